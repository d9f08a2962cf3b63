export interface Token {
  index: number;
  label: string;
  id: number | null;
  padding: boolean;
  special: boolean;
}

export interface Sequence {
  name: string;
  title: string;
  tokens: Token[];
}

/** A token of a sequence. */
export interface Query {
  sequence: string;
  index: number;
}

export interface StripHeader {
  key: string;
  seq: number;
  sequences: Sequence[];
  selected: Query | null;
}
