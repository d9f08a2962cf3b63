import { makeElement, setText } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";
import { countBlocked } from "./cells.js";
import { emptyText, totalText } from "./sentences.js";

const say = textsOf("mask_painter/status");
const HINTS = {
  mouse: say("mouse"),
  touch: say("touch"),
  look: say("look"),
};

/** The words about the painting: how much is blocked, what went wrong with the last stroke, and how to paint. */
export function makeStatus() {
  const counted = makeElement("span", "painted-count");
  const warning = makeElement("span", "painted-warning");
  const message = makeElement("span", "", { role: "status" });
  const offer = makeElement("button", "tool painted-offer", { type: "button" });
  const said = makeElement("div", "painted-message", {}, [message, offer]);
  offer.hidden = true;
  const hints = Object.entries(HINTS).map(([name, text]) =>
    makeElement("div", `hint hint-${name}`, { "aria-hidden": "true" }, [text]));
  return {
    element: makeElement("div", "painted", {}, [counted, warning]),
    hints,
    /** The sentence about the last stroke, which stays in sight while the painting is scrolled. */
    said,
    /** Say how many cells are blocked, and how many rows (one flag each, null for none) have no key left.
     *  @param {Uint16Array} bits @param {Uint8Array | null} emptyRows */
    count(bits, emptyRows) {
      let blocked = 0;
      for (const cell of bits) if (cell) blocked += 1;
      setText(counted, totalText(blocked, bits.length) + (emptyRows ? "; " : ""));
      setText(warning, emptyRows ? emptyText(countBlocked(emptyRows)) : "");
    },
    /** Say one sentence about the last stroke, with what can be done about it; "" takes it away.
     *  @param {string} text @param {{ text: string, act: () => void } | null} offered */
    tell(text, offered = null) {
      setText(message, text);
      offer.hidden = !offered;
      setText(offer, offered?.text ?? "");
      offer.onclick = offered?.act ?? null;
    },
    summary() {
      return counted.textContent + warning.textContent;
    },
  };
}
