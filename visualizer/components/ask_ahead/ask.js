import { fetchAhead } from "../shared/arrivals.js";
import { unpack } from "../shared/payload.js";

/** Ask for what the bytes name; nothing is drawn. */
export function render(_root, bytes) {
  const update = (next) => fetchAhead(unpack(next).address);
  update(bytes);
  return { update, destroy() {} };
}
