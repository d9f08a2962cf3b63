/** The theme in an address. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { addressWith, themeIn } from "../../visualizer/components/theme_links/addresses.js";

const THEMES = [["", "System"], ["light_theme", "Light"], ["dark_theme", "Dark"]];
const PAGE = "http://localhost:8501/?embed_options=show_toolbar&edits=a~b&text=the+cat";
const withTheme = (theme) => PAGE.replace("toolbar&", `toolbar&embed_options=${theme}&`);

test("a theme takes the place of another, and leaves everything else as it is written", () => {
  const dark = addressWith(PAGE, "embed_options", THEMES, "dark_theme");
  assert.equal(dark, withTheme("dark_theme"));
  assert.equal(themeIn(dark, "embed_options", THEMES), "dark_theme");
  assert.equal(addressWith(dark, "embed_options", THEMES, "light_theme"), withTheme("light_theme"));
  assert.equal(addressWith(dark, "embed_options", THEMES, ""), PAGE);
  assert.equal(addressWith("http://localhost:8501/?view=heads", "embed_options", THEMES, "dark_theme"),
    "http://localhost:8501/?embed_options=dark_theme&view=heads");
  assert.equal(themeIn(PAGE, "embed_options", THEMES), "");
});
