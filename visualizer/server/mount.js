/** Streamlit as the host of a picture. */

/** @import { Drawn, Host, PictureModule } from "../components/types.d.ts" */

import { SaveMenu } from "../components/saving/menu.js";
import { pageFile } from "../components/saving/page_file.js";
import { sheetOf } from "../components/shared/dom.js";
import { withHeader } from "../components/shared/payload.js";

/**
 * What Streamlit calls a picture with.
 * @typedef {object} Call
 * @property {string} name of its kind
 * @property {Uint8Array} data
 * @property {ShadowRoot} parentElement
 * @property {(name: string, value: object) => void} setTriggerValue
 * @property {(name: string, value: object) => void} setStateValue
 */

/** @typedef {{ style: string, colors: Host["colors"], page: { template: string, style: string, script: string }, modules: Record<string, string> }} ServerHost */

/**
 * A picture on the page.
 * @typedef {object} Entry
 * @property {number} server the number of the one that it is drawn for
 * @property {Drawn | null} picture
 * @property {SaveMenu} [menu]
 * @property {Uint8Array} bytes
 * @property {boolean} hasLeft
 * @property {Call["setTriggerValue"]} setTriggerValue
 * @property {Call["setStateValue"]} setStateValue
 */

/** @type {WeakMap<ShadowRoot, Entry>} */
const mounted = new WeakMap();

/**
 * The server that the page speaks with, as far as it can tell; whether that knows the page, has drawn it, and runs the
 * script; what it is told then.
 * @type {{ number: number, isReady: boolean, hasDrawn: boolean, isRunning: boolean, waiting: (() => void)[] }}
 */
const server = { number: 0, isReady: true, hasDrawn: true, isRunning: false, waiting: [] };

/**
 * The function that Streamlit calls for every new data and for every change of the theme, whatever the picture is.
 * @param {Record<string, PictureModule>} pictures by their modules
 * @param {ServerHost} host
 */
export function mounting(pictures, host) {
  /** @type {Record<string, ReturnType<typeof mountingOf>>} */
  const kinds = {};
  return (/** @type {Call} */ call) => {
    const module = host.modules[call.name];
    return (kinds[module] ??= mountingOf(module, pictures[module], host))(call);
  };
}

/**
 * The same for the pictures of one module.
 *
 * Streamlit may also call the clean-up of a call that a later one has overtaken: `render` therefore runs once per
 * element, and only the clean-up of an element that has left the page ends the picture.
 * @param {string} module @param {PictureModule} picture @param {ServerHost} host
 */
function mountingOf(module, { render, style }, host) {
  const sheets = [host.style, style].map(sheetOf);
  return (/** @type {Call} */ { data, parentElement, setTriggerValue, setStateValue }) => {
    if (!data) return undefined;
    const told = { setTriggerValue, setStateValue, bytes: data };
    /** @type {Entry} */
    const entry = mounted.get(parentElement) ?? { server: -1, picture: null, hasLeft: false, ...told };
    mounted.set(parentElement, entry);
    Object.assign(entry, told);
    if (entry.server === server.number) entry.picture?.update(data);
    else {
      entry.picture?.destroy(); // what it counts is not what the server counts
      entry.menu?.destroy();
      entry.server = server.number;
      parentElement.adoptedStyleSheets = sheets;
      const root = emptyRoot(parentElement);
      const picture = (entry.picture = render(root, data, hostOf(entry, host.colors)));
      if (picture.isSaved) {
        entry.menu = new SaveMenu(savedOf(module, { render, style, root, entry }, host));
        root.after(entry.menu.element);
      }
    }
    return () => {
      if (parentElement.host.isConnected || mounted.get(parentElement) !== entry) return;
      mounted.delete(parentElement);
      entry.hasLeft = true;
      entry.menu?.destroy();
      entry.picture?.destroy();
    };
  };
}

/** What is saved of a picture.
 *  @param {string} module @param {PictureModule & { root: HTMLElement, entry: Entry }} picture
 *  @param {ServerHost} host */
function savedOf(module, { render, style, root, entry }, { colors, page }) {
  const name = module.split("/")[0];
  const bytes = () => withHeader(entry.bytes, entry.picture?.seen ?? {});
  /** @param {string} title */
  const pageUnder = async (title) => {
    const script = await (await fetch(page.script)).text();
    return pageFile({ ...page, script }, { module, key: name, bytes: bytes(), title });
  };
  const title = () => entry.picture?.figureTitle ?? "";
  return { render, style, colors, root, name, title, bytes, page: pageUnder };
}

/** @param {ParentNode} parentElement */
function emptyRoot(parentElement) {
  const root = /** @type {HTMLElement} */ (parentElement.querySelector(".headlight"));
  root.replaceChildren();
  return root;
}

/**
 * An event counts for one run, what is kept for all runs until it is other. A picture that ends tells what it has not told
 * yet, which counts where it is made anew, and not where it has left the page.
 * @param {Entry} entry @param {Host["colors"]} colors
 */
function hostOf(entry, colors) {
  return {
    colors,
    send: (/** @type {string} */ name, /** @type {object} */ value) => entry.hasLeft || tellServer(() => entry.setTriggerValue(name, value)),
    keep: (/** @type {string} */ name, /** @type {object} */ value) => entry.hasLeft || tellServer(() => entry.setStateValue(name, value)),
    pageIsDrawn,
    wear,
  };
}

/** @param {() => void} tell */
function tellServer(tell) {
  if (server.isReady) tell();
  else server.waiting.push(tell);
}

/**
 * Streamlit's messages to the page's host. A server that was started again knows neither the page nor what to do when
 * somebody acts on it, until the script has run.
 */
/** @type {Record<string, (data: any) => void>} */
const HEARD = {
  WEBSOCKET_DISCONNECTED: () => {
    Object.assign(server, { number: server.number + 1, isReady: false, hasDrawn: false });
  },
  WEBSOCKET_CONNECTED: () => {
    if (server.isReady) return;
    server.isRunning = true;
    document.body.inert = true;
    tellPage({ type: "RERUN_SCRIPT" });
  },
  SCRIPT_RUN_STATE_CHANGED: ({ scriptRunState }) => {
    server.isRunning = scriptRunState !== "notRunning";
    tellWhatWaits();
  },
};

/** A sign that every whole run of the script draws anew: a run that another one breaks off ends without. */
function pageIsDrawn() {
  server.hasDrawn = true;
  tellWhatWaits();
}

function tellWhatWaits() {
  if (server.isReady || !server.hasDrawn || server.isRunning) return;
  document.body.inert = false;
  server.isReady = true;
  for (const tell of server.waiting.splice(0)) tell();
}

window.addEventListener("message", ({ source, data }) => source === window && HEARD[data?.type]?.(data));

/**
 * Have the page take on colours and letters, by the protocol in which whoever embeds a page of Streamlit talks to it: a
 * page can be its own host. The colours of charts come from Python.
 * @param {object} look
 */
function wear(look) {
  tellPage({ type: "SET_CUSTOM_THEME_CONFIG", themeInfo: look });
  const hasChart = document.querySelector(".stPlotlyChart");
  if (hasChart) requestAnimationFrame(() => requestAnimationFrame(() => tellPage({ type: "RERUN_SCRIPT" })));
}

/** @param {object} message */
function tellPage(message) {
  window.postMessage({ stCommVersion: 1, ...message }, location.origin);
}
