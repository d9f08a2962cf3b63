/** @import { Get, Header, Take } from "../types.d.ts" */

import { makeElement } from "./dom.js";
import { askOnLine } from "./line.js";
import { unpack } from "./payload.js";
import { textsOf } from "./texts.js";

const say = textsOf("shared/arrivals");
const UNSIGNED = 300; // milliseconds of waiting that need no sign

/**
 * Numbers on their way to a picture, by address. The picture stays as it is until they are there; a newer request
 * takes the place of an older one; what fails says so in one sentence, and can be tried again.
 */
export class Arrivals {
  /** @type {() => void} */ retry;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.sign = makeElement("div", "arrivals-sign", { hidden: "" });
    this.sentence = makeElement("span");
    const again = makeElement("button", "arrivals-again", { type: "button" }, [say("again")]);
    again.addEventListener("click", () => this.retry());
    this.problem = makeElement("div", "arrivals-problem", { role: "alert", hidden: "" }, [this.sentence, again]);
    this.controller = new AbortController();
    /** @type {string[] | null} */ this.awaited = null; // the addresses that are waited for
  }

  /** Fetch from some addresses, one after the other, and hand each answer to `take` as it comes.
   *  @param {string[]} addresses @param {Take} take */
  async ask(addresses, take, get = fetchNumbers) {
    this.cancel();
    if (!this.sign.isConnected) this.root.prepend(this.sign, this.problem);
    this.retry = () => this.ask(addresses, take, get);
    this.awaited = addresses;
    const { signal } = (this.controller = new AbortController());
    this.root.setAttribute("aria-busy", "true");
    this.timer = setTimeout(() => (this.sign.hidden = false), UNSIGNED);
    for (const address of addresses) {
      const answer = await this.answerTo(address, signal, get);
      if (signal.aborted) return;
      if (!answer || !isDrawn(take, answer)) break;
    }
    this.settle();
  }

  /** The answer to one address; null where there is none, which is said.
   *  @param {string} address @param {AbortSignal} signal @param {Get} get */
  async answerTo(address, signal, get) {
    try {
      return await get(address, signal);
    } catch (error) {
      if (signal.aborted) return null;
      this.sentence.textContent = error instanceof Refusal ? error.message : say("no_answer");
      this.problem.hidden = false;
      return null;
    }
  }

  /** The same for what follows a hand: it is asked for many times a second.
   *  @param {string} address @param {Take} take */
  follow(address, take) {
    return this.ask([address], take, followNumbers);
  }

  /** Wait for nothing any more. */
  cancel() {
    this.controller.abort();
    hide(this.problem);
    this.settle();
  }

  settle() {
    this.awaited = null;
    clearTimeout(this.timer);
    hide(this.sign);
    this.root.removeAttribute("aria-busy");
  }
}

/** Draw an answer. What goes wrong here is not the server's: it is logged, and what is drawn next is not kept back.
 *  @param {Take} take @param {Header} answer */
function isDrawn(take, answer) {
  try {
    take(answer);
    return true;
  } catch (error) {
    reportError(error);
    return false;
  }
}

/** Hide an element; one that is hidden already is left alone, or its style would be worked out anew.
 *  @param {HTMLElement} element */
function hide(element) {
  if (!element.hidden) element.hidden = true;
}

/** The server's sentence on an address that it does not answer. */
class Refusal extends Error {}

/** @param {string} address @param {AbortSignal} signal */
/** @type {Get} */
async function followNumbers(address, signal) {
  const answer = await askOnLine(address);
  if (answer === null) return fetchNumbers(address, signal);
  if (typeof answer === "string") throw new Refusal(answer);
  return unpack(new Uint8Array(answer));
}

/** The numbers of an address; what the server says of it, or that it says nothing, is an error.
 *  @param {string} address @param {AbortSignal} [signal] */
export async function fetchNumbers(address, signal) {
  const response = await fetch(new URL(address, document.baseURI), { signal });
  if (response.ok) return unpack(new Uint8Array(await response.arrayBuffer()));
  const isSentence = response.headers.get("content-type")?.startsWith("text/plain");
  throw new Refusal(isSentence ? (await response.text()).trim() : say("no_numbers"));
}
