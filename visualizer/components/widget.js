/** A picture as a widget of a notebook (anywidget): its bytes come from Python, what a person does goes there. */

/** @import { Host, PictureModule } from "./types.d.ts" */

import { groundBehind } from "./saving/frame.js";
import { wearGround } from "./saving/grounds.js";
import { sheetOf } from "./shared/dom.js";
import { themeOn } from "./shared/theme.js";

/** Draw a picture in an element of a notebook, and return what ends it.
 *  @param {PictureModule} module @param {Host["colors"]} colors @param {{ model: any, el: HTMLElement }} widget */
export function renderWidget({ render, style }, colors, { model, el }) {
  const shadow = el.attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = [sheetOf(style)];
  const root = document.createElement("div");
  root.className = "headlight";
  shadow.append(root);
  const background = groundBehind(el);
  const { text } = wearGround(root, themeOn(background), { background });
  root.style.color = text;
  /** @param {string} name @param {object} value */
  const tell = (name, value) => {
    model.set("event", { name, value });
    model.save_changes();
  };
  const bytes = () => {
    const { buffer, byteOffset, byteLength } = model.get("data");
    return new Uint8Array(buffer, byteOffset, byteLength);
  };
  const picture = render(root, bytes(), { colors, send: tell, keep: tell });
  const update = () => picture.update(bytes());
  model.on("change:data", update);
  return () => {
    model.off("change:data", update);
    picture.destroy();
  };
}
