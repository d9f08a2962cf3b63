/** Lines of words above and below the bars. */
export interface ProgressHeader {
  key: string;
  address: string;
  above: string;
  below: string;
  bars: Bar[];
  role?: string;
}

export interface Bar {
  label: string;
  text: string;
  fraction: number;
}
