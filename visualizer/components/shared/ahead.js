import { Foreseen, pictureOf, withParameter } from "./foreseen.js";

/**
 * Numbers that are asked for before the header of their picture is there. The server says which, before it computes
 * them; before that the page knows them itself, when a person has changed a control of the sidebar.
 */

/** @type {{ address: string, answer: Promise<object> | null }} */
let ahead = { address: "", answer: null };
/** @type {Set<{ data: any, addressesOf(header: object): string[], drawAhead(address: string, answer: object): void }>} */
const pictures = new Set();
const askers = new Set();
const foreseen = new Foreseen();

/** Have a picture draw what was asked for ahead and arrives before its header. Returns what ends that. */
export function drawAhead(picture) {
  pictures.add(picture);
  return () => pictures.delete(picture);
}

/** Have `ask(address)` called for the numbers that a person's act leads to. Returns what ends that. */
export function onForeseen(ask) {
  askers.add(ask);
  return () => askers.delete(ask);
}

/** A control has a value, another one or the same, written as in a link; null for what links leave out. */
export function foresee(name, value) {
  const picture = [...pictures].find(({ data }) => data?.address);
  if (!picture || !askers.size) return;
  const before = isForeseen(picture.data.address) ? foreseen.last : picture.data.address;
  const after = withParameter(before, name, value);
  if (after === before) return;
  foreseen.add(after);
  const [first] = picture.addressesOf({ ...picture.data, address: after });
  for (const ask of askers) ask(first);
}

/** The header of an address is there: whether a person has done more since, so that the next one is on its way. */
export function isOvertaken(address) {
  return isForeseen(address) && foreseen.isOvertaken(address);
}

/** Whether it is the picture of an address whose next numbers are foreseen. */
function isForeseen(address) {
  return foreseen.last !== undefined && pictureOf(foreseen.last) === pictureOf(address);
}

/** What a picture is about to ask for was asked for already: `answer` is a promise of its numbers, null for none. */
export function expectAhead(address, answer) {
  ahead = { address, answer };
  const tell = (numbers) => {
    if (ahead.answer === answer) for (const picture of pictures) picture.drawAhead(address, numbers);
  };
  answer?.then(tell, () => {}); // whoever takes it asks again
}

/** The answer that was asked for ahead, once; null where it was another one. */
export function takeAhead(address) {
  if (address !== ahead.address) return null;
  const { answer } = ahead;
  ahead = { address, answer: null };
  return answer;
}
