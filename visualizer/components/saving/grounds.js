/** The page around a picture that has none of its own: a figure, a widget of a notebook. */

const GROUNDS = {
  light: { background: "#ffffff", "secondary-background": "#f4f3f8", text: "#15131d", primary: "#6d3fc0", link: "#5b32a8" },
  dark: { background: "#0e1117", "secondary-background": "#1a1e28", text: "#e9e8f0", primary: "#a98bf0", link: "#b9a2f5" },
};

/**
 * Give an element the colours of a page in a theme, which it also returns.
 * @param {HTMLElement} root @param {"light" | "dark"} theme
 * @param {Partial<typeof GROUNDS.light>} [own] those that the page says itself
 */
export function wearGround(root, theme, own = {}) {
  const ground = { ...GROUNDS[theme], ...own };
  for (const [name, color] of Object.entries(ground)) root.style.setProperty(`--hl-${name}`, color);
  return ground;
}
