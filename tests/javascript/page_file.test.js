/** A picture as a page: it holds its numbers, and asks for no others. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { pageFile } from "../../visualizer/components/saving/page_file.js";
import { packedAgain, takenApart } from "../../visualizer/components/shared/payload.js";

globalThis.location = { href: "http://headlight/?text=<b>" };
globalThis.document = { baseURI: "http://headlight/" };

const PAGE = { template: "{{title}}\n{{link}}\n{{pictures}}\n{{script}}", style: "", script: "draw('</script')" };

/** What a page is handed of a picture. */
async function saved(header) {
  const text = await pageFile(PAGE, { module: "m", key: "k", bytes: packedAgain(header, new Uint8Array(8)), title: "a & b" });
  const [, data] = /text\/plain">(.*)<\/script><\/section>/.exec(text);
  return { text, ...takenApart(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))) };
}

test("a page has what its picture fetched, and no address", async () => {
  globalThis.fetch = async (url) => {
    assert.equal(String(url), "http://headlight/pictures/heads?text=a");
    return { ok: true, arrayBuffer: async () => packedAgain({ rows: 2 }, Uint8Array.of(1, 2, 3)).buffer };
  };
  const dials = { dials: [{}], dial_address: "pictures/heads?", live: { at_rest: "pictures/heads?" } };
  const { header, arrays } = await saved({ address: "pictures/heads?text=a", layer: 1, ...dials });
  assert.deepEqual(header, { layer: 1, rows: 2, dials: [], dial_address: "", live: null });
  assert.deepEqual([...arrays], [1, 2, 3]);
});

test("no text of a page is read as markup", async () => {
  const { text } = await saved({});
  assert.match(text, /a &amp; b\nhttp:\/\/headlight\/\?text=&lt;b&gt;/);
  assert.doesNotMatch(text, /draw\('<\/script/);
});
