/** @import { Theme } from "./types.d.ts" */

/** The theme that an address names, "" for none. `themes` are [value, name] pairs.
 *  @param {string} address @param {string} parameter @param {Theme[]} themes */
export function themeIn(address, parameter, themes) {
  const given = new URL(address).searchParams.getAll(parameter);
  return themes.map(([value]) => value).find((value) => value && given.includes(value)) ?? "";
}

/** The address with another theme, "" for none; other values of the parameter stay.
 *  @param {string} address @param {string} parameter @param {Theme[]} themes @param {string} theme */
export function addressWith(address, parameter, themes, theme) {
  const url = new URL(address);
  const values = themes.map(([value]) => value);
  const others = url.searchParams.getAll(parameter).filter((value) => !values.includes(value));
  url.searchParams.delete(parameter);
  for (const value of theme ? [...others, theme] : others) url.searchParams.append(parameter, value);
  return url.href;
}
