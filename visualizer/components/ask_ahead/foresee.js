import { foresee } from "../shared/ahead.js";
import { unpack } from "../shared/payload.js";

const LOOKS = [0, 60]; // milliseconds after an act: a busy page takes it a little later
const ACTS = ["pointerdown", "pointerup", "click", "keydown", "keyup", "input", "change", "focusout"];

/** Watches the controls that the bytes describe: what a person changes in one is foreseen before the server hears it. */
class Watched {
  constructor() {
    this.controls = {};
    this.untaken = "";
    const look = ({ target }) => this.look(target);
    for (const act of ACTS) document.addEventListener(act, look, true);
    this.destroy = () => ACTS.forEach((act) => document.removeEventListener(act, look, true));
  }

  update(bytes) {
    Object.assign(this, unpack(bytes));
  }

  /** A person does something: see what has come of it once the page has taken it. */
  look(target) {
    if (!(target instanceof Element)) return;
    for (const [name, { selector }] of Object.entries(this.controls)) {
      const element = target.closest(selector);
      if (element) for (const wait of LOOKS) setTimeout(() => this.tell(name, element), wait);
    }
  }

  tell(name, element) {
    const control = this.controls[name];
    const value = control && valueOf(element, control);
    if (value === undefined || element.querySelector(this.untaken)?.textContent) return;
    foresee(name, value === control.usual ? null : value);
  }
}

/**
 * What a control of the page has, as a link has it; undefined where that cannot be read.
 * @param {Element} element
 * @param {{ values: string[] }} control what its places stand for; without any it has numbers or text
 */
function valueOf(element, { values }) {
  const field = element.querySelector("textarea, input");
  if (field instanceof HTMLTextAreaElement) return field.value.includes("\n") ? undefined : field.value;
  if (field instanceof HTMLInputElement) {
    if (field.type === "checkbox") return values[Number(field.checked)];
    return values.length ? values[Number(field.value)] : String(Number(field.value));
  }
  const chosen = placesWith(element, "aria-checked");
  if (chosen.length) return values[chosen.indexOf(true)];
  const pressed = placesWith(element, "aria-pressed");
  return values.filter((_, place) => pressed[place]).join(",") || "none";
}

/** Which of the places of a control are marked. */
function placesWith(element, mark) {
  return [...element.querySelectorAll(`[${mark}]`)].map((one) => one.getAttribute(mark) === "true");
}

/** Watch the controls that the bytes name; nothing is drawn. */
export function render(_root, bytes) {
  const watched = new Watched();
  watched.update(bytes);
  return watched;
}
