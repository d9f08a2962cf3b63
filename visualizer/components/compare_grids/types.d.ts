import type { LayersHeader } from "../types.d.ts";

/** A and B, each with its title and the names of its masks. */
export interface CompareHeader extends LayersHeader {
  sides: Record<"a" | "b", { title: string; blocked_by: string[] }>;
}
