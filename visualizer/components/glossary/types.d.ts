/** `text` is [words, entry that they open] each; `search` is where an entry is found. */
export interface Entry {
  name: string;
  symbol: string;
  text: [string, string][];
  size: string;
  source: string;
  search: string;
}

/** `sizes` is what is known of this run, by the size of an entry. */
export interface GlossaryHeader {
  key: string;
  entries: Entry[];
  sizes: Record<string, string>;
}
