/** @import { Header, Host, Mark, PictureModule, Point, Theme, TooltipLine } from "../types.d.ts" */
/** @import { Events } from "./events.js" */

import { announcePainted, oncePerFrame } from "./dom.js";
import { publishHover, subscribeHover } from "./hover.js";
import { unpack } from "./payload.js";
import { around, isPresented, roomBelow } from "./room.js";
import { applyTheme } from "./theme.js";
import { makeTooltip } from "./tooltip.js";
import { pixelRatioOf } from "./zoom.js";

/**
 * The common part of all pictures: it takes bytes and the theme, draws anew when its room changes, has a note beside the
 * pointer, hears what is pointed at elsewhere on the page, and ends.
 *
 * A picture says how it takes over `this.data` (`receive`), how it draws (`draw`), what it lights (`onHover`), and what
 * else is to end with it (`endings`).
 * @template {Header} [Data=Header]
 */
export class Picture {
  /** @type {Theme} */ theme;

  /** @type {Data} */ data;

  /** The acts of a person in it, where it has any of its own. @type {Events | null} */
  events = null;

  /** True if it is worth saving: it shows numbers. */
  isSaved = false;

  /** name: what the picture is called when it tells that it is painted.
   *  @param {HTMLElement} root @param {Host} host @param {string} name */
  constructor(root, host, name) {
    this.root = root;
    this.host = host;
    this.name = name;
    this.width = 0;
    this.height = 0;
    this.isPointing = false;
    this.tooltip = makeTooltip(root);
    const resize = new ResizeObserver(oncePerFrame(() => this.data && this.hasOtherRoom() && this.redraw()));
    for (const element of [root, ...around(root)]) resize.observe(element); // what stands above makes these higher
    const end = new AbortController();
    this.endings = [() => end.abort(), () => resize.disconnect(), () => this.tooltip.destroy()];
    /** Options of what it hears outside of itself. */
    this.untilEnd = { signal: end.signal };
    window.addEventListener("popstate", () => this.takeBack(), this.untilEnd);
    subscribeHover(({ marks, origin }) => origin !== this && this.data && this.hear(marks), this.untilEnd);
  }

  /** Hear the keys of the page, as soon as there is something to act on. @param {(event: KeyboardEvent) => void} hear */
  hearKeys(hear) {
    document.addEventListener("keydown", (event) => this.data && hear(event), this.untilEnd);
  }

  /** Take new bytes and draw them. @param {Uint8Array} bytes */
  update(bytes) {
    this.take(unpack(bytes));
  }

  /** Take new data and draw it. @param {Data} data */
  take(data) {
    this.data = data;
    this.theme = applyTheme(this.root, this.host);
    this.receive();
    this.redraw();
    this.announce(this.data.key);
  }

  /**
   * After Back, show again what the host sent last, where more was done here since: it may never hear of that, and then
   * sends nothing new.
   */
  takeBack() {
    if (!this.data || !this.events?.isAhead(this.data.seq ?? 0)) return;
    this.receive();
    this.redraw();
  }

  /** Draw, unless there is no room, as on a page that is not shown. */
  redraw() {
    this.width = this.root.clientWidth;
    this.height = this.roomBelow();
    pixelRatioOf(this.root); // asked for while nothing is changed
    if (this.width) this.draw();
  }

  hasOtherRoom() {
    return this.root.clientWidth !== this.width || this.roomBelow() !== this.height;
  }

  /** The height that the picture has on a page that is presented; elsewhere it takes what it wants. */
  roomBelow() {
    return isPresented(this.root) ? Math.round(roomBelow(this.root)) : 0;
  }

  /** The title of a figure of it, where it has one. */
  get figureTitle() {
    return "";
  }

  /** The entries of its header that a person has changed here, as they are now. */
  get seen() {
    return {};
  }

  receive() {}

  draw() {}

  /** @param {object[]} _marks what is pointed at */
  onHover(_marks) {}

  /** Light what another picture points at; a note of this one is about something else. @param {Mark[]} marks */
  hear(marks) {
    this.tooltip.hide();
    this.onHover(marks);
  }

  /** Tell the page which tokens are pointed at. @param {Mark[]} marks */
  publish(marks) {
    this.isPointing = marks.length > 0;
    publishHover(marks, this);
  }

  /** A person points at something: a note stands beside the point, its tokens are lit on the page.
   *  @param {TooltipLine[]} lines @param {Point} point @param {Mark[]} marks */
  pointAt(lines, { x, y }, marks) {
    this.tooltip.show(lines, x, y);
    this.publish(marks);
  }

  /** A person points at nothing here any more. */
  leave() {
    this.hear([]);
    this.publish([]);
  }

  /** Tell the page that something is drawn, by its key. @param {string} key */
  announce(key) {
    announcePainted(this.name, key);
  }

  destroy() {
    if (this.isPointing) this.publish([]); // no pointer leaves what is gone
    for (const end of this.endings) end();
  }
}

/** What draws pictures of a kind.
 *  @param {new (root: HTMLElement, host: Host) => Picture} Kind @returns {PictureModule["render"]} */
export function rendererOf(Kind) {
  return (root, bytes, host) => {
    const picture = new Kind(root, host);
    picture.update(bytes);
    return picture;
  };
}
