import { makeElement } from "./dom.js";
import { unpack } from "./payload.js";

const UNSIGNED = 300; // milliseconds of waiting that need no sign

/**
 * Numbers on their way to a picture, by address. The picture stays as it is until they are there; a newer request
 * takes the place of an older one; what fails says so in one sentence, and can be tried again.
 */
export class Arrivals {
  constructor(root) {
    this.root = root;
    this.sign = makeElement("div", "arrivals-sign", { hidden: "" });
    this.sentence = makeElement("span");
    const again = makeElement("button", "arrivals-again", { type: "button" }, ["Try again"]);
    again.addEventListener("click", () => this.retry());
    this.problem = makeElement("div", "arrivals-problem", { role: "alert", hidden: "" }, [this.sentence, again]);
    this.controller = new AbortController();
    this.awaited = null; // the addresses that are waited for
  }

  /** Fetch from some addresses, one after the other, and hand each answer to `take` as it comes. */
  async ask(addresses, take) {
    this.cancel();
    if (!this.sign.isConnected) this.root.prepend(this.sign, this.problem);
    this.retry = () => this.ask(addresses, take);
    this.awaited = addresses;
    const { signal } = (this.controller = new AbortController());
    this.root.setAttribute("aria-busy", "true");
    this.timer = setTimeout(() => (this.sign.hidden = false), UNSIGNED);
    try {
      for (const address of addresses) {
        const bytes = await (takeAhead(address) ?? fetchBytes(address, signal));
        if (signal.aborted) return;
        take(unpack(bytes));
      }
    } catch (error) {
      if (signal.aborted) return;
      this.sentence.textContent = error instanceof Refusal ? error.message : "The server does not answer.";
      this.problem.hidden = false;
    }
    this.settle();
  }

  /** Wait for nothing any more. */
  cancel() {
    this.controller.abort();
    this.problem.hidden = true;
    this.settle();
  }

  settle() {
    this.awaited = null;
    clearTimeout(this.timer);
    this.sign.hidden = true;
    this.root.removeAttribute("aria-busy");
  }
}

let ahead = { address: "", answer: null, controller: new AbortController() };

/** Ask for what a picture is about to ask for; "" is nothing. What was asked for ahead before is not waited for. */
export function fetchAhead(address) {
  if (address === ahead.address) return;
  ahead.controller.abort();
  const controller = new AbortController();
  const answer = address ? fetchBytes(address, controller.signal) : null;
  answer?.catch(() => {}); // whoever takes it hears of it
  ahead = { address, answer, controller };
}

/** The answer that was asked for ahead, once; null where it was another one. */
function takeAhead(address) {
  if (address !== ahead.address) return null;
  const { answer } = ahead;
  ahead = { address, answer: null, controller: new AbortController() }; // whoever took it ends it
  return answer;
}

/** What the server says of an address that it does not answer. */
class Refusal extends Error {}

async function fetchBytes(address, signal) {
  const response = await fetch(new URL(address, document.baseURI), { signal });
  if (response.ok) return new Uint8Array(await response.arrayBuffer());
  const isSentence = response.headers.get("content-type")?.startsWith("text/plain");
  throw new Refusal(isSentence ? (await response.text()).trim() : "The server has no such numbers.");
}
