/** Streamlit as the host of a picture. */

const mounted = new WeakMap();

/**
 * What Streamlit calls for every new data and for every change of the theme.
 *
 * It may also call the clean-up of a call that a later one has overtaken: `render` therefore runs once per element,
 * and only the clean-up of the latest call ends the picture.
 */
export function mounting({ render, style }, hostStyle, colors) {
  const sheets = [hostStyle, style].map(makeSheet);
  return ({ data, parentElement, setTriggerValue, setStateValue }) => {
    if (!data) return undefined;
    const entry = mounted.get(parentElement) ?? { calls: 0, picture: null };
    mounted.set(parentElement, entry);
    Object.assign(entry, { setTriggerValue, setStateValue });
    const call = (entry.calls += 1);
    if (entry.picture) entry.picture.update(data);
    else {
      parentElement.adoptedStyleSheets = sheets;
      entry.picture = render(emptyRoot(parentElement), data, hostOf(entry, colors));
    }
    return () => {
      if (entry.calls !== call || mounted.get(parentElement) !== entry) return;
      mounted.delete(parentElement);
      entry.picture.destroy();
    };
  };
}

function makeSheet(style) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  return sheet;
}

function emptyRoot(parentElement) {
  const root = parentElement.querySelector(".headlight");
  root.replaceChildren();
  return root;
}

/** An event counts for one run, what is kept for all runs until it is other. */
function hostOf(entry, colors) {
  return {
    colors,
    send: (name, value) => entry.setTriggerValue(name, value),
    keep: (name, value) => entry.setStateValue(name, value),
    wear,
  };
}

/**
 * Have the page take on colours and letters, by the protocol in which whoever embeds a page of Streamlit talks to it: a
 * page can be its own host. The colours of charts come from Python.
 */
function wear(look) {
  tellPage({ type: "SET_CUSTOM_THEME_CONFIG", themeInfo: look });
  const hasChart = document.querySelector("[data-testid=stPlotlyChart]");
  if (hasChart) requestAnimationFrame(() => requestAnimationFrame(() => tellPage({ type: "RERUN_SCRIPT" })));
}

function tellPage(message) {
  window.postMessage({ stCommVersion: 1, ...message }, location.origin);
}
