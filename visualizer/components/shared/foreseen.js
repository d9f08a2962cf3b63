const LONGEST = 3000; // milliseconds after which the server no longer comes to an address that was foreseen

/** What follows from the acts of a person, one after the other, until the server has come to the last of them. */
export class Foreseen {
  constructor() {
    /** @type {{ address: string, at: number }[]} */
    this.acts = [];
  }

  add(address) {
    this.acts.push({ address, at: performance.now() });
  }

  /** The last address; undefined where the server has come to it. */
  get last() {
    this.acts = this.acts.filter(({ at }) => performance.now() - at < LONGEST);
    return this.acts.at(-1)?.address;
  }

  /** The server has come to an address: whether a person has done more since. */
  isOvertaken(address) {
    const isEarlier = address !== this.last && this.acts.some((act) => act.address === address);
    if (!isEarlier) this.acts = [];
    return isEarlier;
  }
}

/** Which picture an address has the numbers of. */
export function pictureOf(address) {
  return address.split("?")[0];
}

/** An address with a parameter that has another value, written as the server would; without it where that is null. */
export function withParameter(address, name, value) {
  const [path, query] = address.split("?");
  const others = query.split("&").filter((one) => !one.startsWith(`${name}=`));
  const parameters = value === null ? others : [...others, `${name}=${encoded(value)}`];
  return `${path}?${parameters.sort().join("&")}`;
}

/** A text in an address, as Python's `quote_plus` has it. */
function encoded(text) {
  const unsafe = (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text).replace(/[!'()*]/g, unsafe).replaceAll("%20", "+");
}
