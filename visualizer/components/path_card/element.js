/** The card of one stop of a path: what is said, what to try, how far one is, and the ways back and on. */

/** @import { Host } from "../types.d.ts" */
/** @import { CardHeader, Part } from "./types.d.ts" */

import { wordNodes } from "../shared/define.js";
import { makeElement, setText, tokenSpan } from "../shared/dom.js";
import { Events } from "../shared/events.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";

const say = textsOf("path_card/element");

/** @extends {Picture<CardHeader>} */
class PathCard extends Picture {
  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "path_card");
    this.events = new Events(host);
    this.stops = makeElement("select", "path-stops", { "aria-label": say("stops") });
    this.stops.onchange = () => this.step(Number(this.stops.value) - this.data.current);
    this.title = makeElement("h2", "path-title");
    this.words = makeElement("p", "path-words");
    this.trial = makeElement("p", "path-trial");
    this.back = this.button("path-back", say("back"), () => this.step(-1));
    this.next = this.button("path-next", say("next"), () => this.step(1));
    this.show = this.button("path-show", say("show"), () => this.step(0));
    this.leaving = this.button("path-leave", say("leave"), () => this.events.send("leave", {}));
    const head = makeElement("div", "path-head", {}, [this.stops, this.title, this.show]);
    const ways = makeElement("div", "path-ways", {}, [this.leaving, this.back, this.next]);
    this.onward = makeElement("div", "path-onward");
    const text = makeElement("div", "path-text", { "aria-live": "polite" }, [this.words, this.trial, this.onward]);
    this.frame = makeElement("section", "path-card", { "aria-label": say("path") }, [head, ways, text]);
    root.prepend(this.frame);
  }

  /** @param {string} className @param {string} label @param {() => void} act */
  button(className, label, act) {
    const made = makeElement("button", className, { type: "button" }, [label]);
    made.onclick = act;
    return made;
  }

  receive() {
    const { title, stops, current, words, trial, onward, is_here: isHere } = this.data;
    setText(this.title, title);
    this.words.replaceChildren(...nodesOf(words));
    this.trial.replaceChildren(makeElement("b", "", {}, [say("try")]), ...nodesOf(trial));
    this.trial.hidden = trial.length === 0;
    this.show.hidden = isHere;
    this.back.disabled = current === 0;
    this.next.hidden = current === stops.length - 1;
    const ways = onward.map(([view, label]) => this.button("path-way", label, () => this.events.send("onward", { view })));
    this.onward.hidden = ways.length === 0;
    this.onward.replaceChildren(makeElement("b", "", {}, [say("onward")]), ...ways);
    const here = makeElement("option", "", { value: current, hidden: "" }, [say("place", { stop: current + 1, stops: stops.length })]);
    const all = stops.map(([, name], index) => makeElement("option", "", { value: index }, [`${index + 1} ${name}`]));
    this.stops.replaceChildren(here, ...all);
    this.stops.selectedIndex = 0;
  }

  /** Go so many stops on. @param {number} steps */
  step(steps) {
    const { stops, current } = this.data;
    this.events.send("go", { stop: stops[current + steps][0] });
  }
}

/** The parts of a text: tokens as such, words of the glossary as buttons that open it.
 *  @param {Part[]} parts @returns {(string | Node)[]} */
function nodesOf(parts) {
  return parts.map(([text, entry, isToken]) => (isToken ? tokenSpan(text) : wordNodes([[text, entry]])[0]));
}

export const render = rendererOf(PathCard);
