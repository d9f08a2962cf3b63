/** @import { Figure, Look, Saved } from "./figure.js" */

import { makeElement, setText } from "../shared/dom.js";
import { isDone, saveFile } from "../shared/files.js";
import { isLetterForPage } from "../shared/keys.js";
import { textsOf } from "../shared/texts.js";
import { figureOf, pngOf } from "./figure.js";
import { MILLIMETRE } from "./svg.js";

const say = textsOf("saving/menu");
/** @type {Record<string, number>} */
const WIDTHS = { column: 85, text: 120, page: 174 }; // millimetres
const SCALES = [1, 2, 4];

/**
 * The button below a picture, and the dialog in which it is saved, as a figure or as a page. The key S opens it while
 * something in the picture has the focus.
 */
export class SaveMenu {
  /** @type {HTMLDialogElement | undefined} */ dialog;
  /** @type {HTMLSelectElement} */ width;
  /** @type {HTMLSelectElement} */ theme;
  /** @type {HTMLInputElement} */ title;
  /** @type {HTMLInputElement} */ caption;
  /** @type {HTMLInputElement} */ legend;
  /** @type {HTMLImageElement} */ preview;
  /** @type {HTMLElement} */ said;
  /** @type {Promise<Figure>} */ figure;

  /** @param {Saved} saved */
  constructor(saved) {
    this.saved = saved;
    this.latest = 0;
    this.button = makeElement("button", "saving-open", { type: "button", title: say("help") }, [say("open")]);
    this.element = makeElement("span", "saving", {}, [this.button]);
    this.button.addEventListener("click", () => this.open());
    this.onKey = (/** @type {KeyboardEvent} */ event) => this.hearKey(event);
    saved.root.addEventListener("keydown", this.onKey);
  }

  destroy() {
    this.saved.root.removeEventListener("keydown", this.onKey);
    this.element.remove();
  }

  /** @param {KeyboardEvent} event */
  hearKey(event) {
    if (event.key !== "s" || !isLetterForPage(event)) return;
    event.preventDefault();
    event.stopPropagation();
    this.open();
  }

  open() {
    this.dialog ??= this.build();
    this.element.append(this.dialog);
    if (this.title.value === this.suggested) this.title.value = this.saved.title();
    this.suggested = this.saved.title();
    this.dialog.showModal();
    this.draw();
  }

  build() {
    this.width = makeSelect("width", {
      screen: say("on_screen"),
      column: say("width_column", { width: WIDTHS.column }),
      text: say("width_text", { width: WIDTHS.text }),
      page: say("width_page", { width: WIDTHS.page }),
    });
    this.width.value = "screen";
    this.theme = makeSelect("theme", { light: say("light"), dark: say("dark") });
    this.suggested = this.saved.title();
    this.title = makeElement("input", "", { type: "text", maxlength: 200, value: this.suggested });
    this.caption = makeElement("input", "", { type: "text", maxlength: 600 });
    this.legend = makeElement("input", "", { type: "checkbox", checked: "" });
    this.preview = makeElement("img", "saving-preview", { alt: say("preview") });
    this.said = makeElement("p", "saving-said", { role: "status" });
    const fields = makeElement("div", "saving-fields", {}, [
      labelled(say("width"), this.width),
      labelled(say("theme"), this.theme),
      labelled(say("title"), this.title),
      labelled(say("caption"), this.caption),
      labelled(say("legend"), this.legend),
    ]);
    fields.addEventListener("input", () => this.draw());
    const close = makeButton(say("close"), () => this.dialog?.close());
    const dialog = makeElement("dialog", "saving-dialog", { "aria-label": say("help") }, [
      fields,
      this.preview,
      this.ways(),
      this.said,
      close,
    ]);
    dialog.addEventListener("keydown", (event) => event.stopPropagation()); // letters are keys of the page
    return dialog;
  }

  ways() {
    /** @param {string} kind @param {(figure: Figure) => Blob | Promise<Blob>} make */
    const asFile = (kind, make) => () =>
      this.do(async () => saveFile(await make(await this.figure), `${this.saved.name}.${kind}`));
    /** @param {number} scale */
    const asPng = (scale) => asFile("png", (figure) => pngOf(figure, scale));
    const asPage = asFile("html", async () => {
      const given = this.title.value === this.suggested ? "" : this.title.value; // on a page the layer can be changed
      return new Blob([await this.saved.page?.(given) ?? ""], { type: "text/html" });
    });
    return makeElement("div", "saving-row", {}, [
      makeButton("SVG", asFile("svg", ({ text }) => new Blob([text], { type: "image/svg+xml" }))),
      ...SCALES.map((scale) => makeButton(`PNG ${scale}×`, asPng(scale))),
      makeButton(say("copy"), () => this.do(() => this.copy())),
      ...(this.saved.page ? [makeButton(say("page"), asPage)] : []),
    ]);
  }

  /** @returns {Look} */
  look() {
    const millimetres = WIDTHS[this.width.value];
    return {
      width: millimetres ? Math.round(millimetres * MILLIMETRE) : this.saved.root.clientWidth,
      theme: /** @type {Look["theme"]} */ (this.theme.value),
      title: this.title.value,
      caption: this.caption.value,
      hasLegend: this.legend.checked,
    };
  }

  /** Draw the figure as it would be saved now. */
  async draw() {
    const number = (this.latest += 1);
    await this.do(async () => {
      this.figure = figureOf(this.saved, this.look());
      const { text } = await this.figure;
      if (number === this.latest) this.preview.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  }

  /** Copy the figure as an image, in the resolution of a good screen. */
  async copy() {
    const png = this.figure.then((figure) => pngOf(figure, 2)); // a browser wants the promise at once
    const isCopied = await isDone(() => navigator.clipboard.write([new ClipboardItem({ "image/png": png })]));
    setText(this.said, isCopied ? say("copied") : say("not_copied"));
  }

  /** @param {() => Promise<void>} act */
  async do(act) {
    setText(this.said, "");
    try {
      await act();
    } catch (error) {
      reportError(error);
      setText(this.said, say("failed"));
    }
  }
}

/** @param {string} name @param {Record<string, string>} texts */
function makeSelect(name, texts) {
  const options = Object.entries(texts).map(([value, text]) => makeElement("option", "", { value }, [text]));
  return makeElement("select", "", { name }, options);
}

/** @param {string} text @param {HTMLElement} control */
function labelled(text, control) {
  return makeElement("label", "saving-field", {}, [text, control]);
}

/** @param {string} text @param {() => void} act */
function makeButton(text, act) {
  const button = makeElement("button", "saving-button", { type: "button" }, [text]);
  button.addEventListener("click", act);
  return button;
}
