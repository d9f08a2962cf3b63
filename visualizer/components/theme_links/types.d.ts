/** A theme's value in an address, and its name. */
export type Theme = [string, string];

export interface LinksHeader {
  key: string;
  themes: Theme[];
  parameter: string;
  looks: Record<string, object>;
}
