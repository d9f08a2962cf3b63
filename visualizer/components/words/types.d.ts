/** Lines of [words, entry that they open]. */
export interface WordsHeader {
  key: string;
  look: string;
  lines: [string, string][][];
}
