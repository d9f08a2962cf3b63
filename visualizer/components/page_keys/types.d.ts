/** `addresses` are those that were drawn; `screen` is the screen as a file where no link carries it. */
export interface KeysHeader {
  key: string;
  seq: number;
  overview: [string, string][];
  keys: Record<string, string>;
  longest: Record<string, number>;
  cookie: string;
  addresses: Record<string, string>[];
  screen: string;
}
