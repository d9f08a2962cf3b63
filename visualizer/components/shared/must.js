/**
 * A value that is there by now.
 * @template Value
 * @param {Value} value
 * @param {string} missing the sentence of the error where it is not
 * @returns {NonNullable<Value>}
 */
export function must(value, missing) {
  if (value === null || value === undefined) throw new Error(missing);
  return value;
}
