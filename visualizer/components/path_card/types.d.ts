/** A part of a text: the words, the entry that they open, whether it is a token. */
export type Part = [string, string, boolean];

export interface CardHeader {
  key: string;
  title: string;
  words: Part[];
  trial: Part[];
  stops: [number, string][];
  current: number;
  is_here: boolean;
  onward: [string, string][];
}
