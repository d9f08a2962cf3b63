/** @import { Theme } from "./types.d.ts" */

/** The theme that an address names, "" for none. `themes` are [value, name] pairs.
 *  @param {string} address @param {string} parameter @param {Theme[]} themes */
export function themeIn(address, parameter, themes) {
  const given = new URL(address).searchParams.getAll(parameter);
  return themes.map(([value]) => value).find((value) => value && given.includes(value)) ?? "";
}

/** The address with another theme, "" for none, written as Streamlit writes it: an address that differs from what the
 *  server says is a further entry in the history. Other values of the parameter stay.
 *  @param {string} address @param {string} parameter @param {Theme[]} themes @param {string} theme */
export function addressWith(address, parameter, themes, theme) {
  const url = new URL(address);
  const parts = url.search.slice(1).split("&").filter(Boolean);
  const isOption = (/** @type {string} */ part) => part.startsWith(`${parameter}=`);
  const ofThemes = themes.map(([value]) => `${parameter}=${value}`);
  const options = parts.filter((part) => isOption(part) && !ofThemes.includes(part));
  if (theme) options.push(`${parameter}=${theme}`);
  url.search = [...options, ...parts.filter((part) => !isOption(part))].join("&");
  return url.href;
}
