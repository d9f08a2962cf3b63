/** The theme in an address. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { addressWith, themeIn } from "../../visualizer/components/theme_links/addresses.js";

const THEMES = [["", "System"], ["light_theme", "Light"], ["dark_theme", "Dark"]];
const PAGE = "http://localhost:8501/?text=the+cat&embed_options=show_toolbar";

test("a theme takes the place of another, and leaves everything else", () => {
  const dark = addressWith(PAGE, "embed_options", THEMES, "dark_theme");
  assert.equal(dark, `${PAGE}&embed_options=dark_theme`);
  assert.equal(themeIn(dark, "embed_options", THEMES), "dark_theme");
  assert.equal(addressWith(dark, "embed_options", THEMES, "light_theme"), `${PAGE}&embed_options=light_theme`);
  assert.equal(addressWith(dark, "embed_options", THEMES, ""), PAGE);
  assert.equal(themeIn(PAGE, "embed_options", THEMES), "");
});
