/**
 * Beside the page, which is busy drawing its messages one after the other: hears from the server which numbers are
 * drawn next, fetches them, and hands them over in one piece.
 *
 * To the page: {address} when numbers are asked for, then {address, bytes}; null where they did not come, or others
 * were asked for meanwhile.
 */

const AGAIN = 3000; // milliseconds after which a line that was cut is opened again

let controller = new AbortController();
let last = "";

/** @param {{line: string, page: string}} where the address of the line, and that of the page */
export function listen({ line, page }) {
  const address = new URL(line, page);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address);
  socket.onmessage = ({ data }) => ask(data, page);
  socket.onclose = () => setTimeout(() => listen({ line, page }), AGAIN);
}

async function ask(address, page) {
  if (address === last) return;
  last = address;
  controller.abort();
  const { signal } = (controller = new AbortController());
  postMessage({ address });
  if (!address) return;
  const bytes = await fetched(new URL(address, page), signal);
  postMessage({ address, bytes }, { transfer: bytes ? [bytes] : [] });
}

async function fetched(address, signal) {
  try {
    const response = await fetch(address, { signal });
    return response.ok ? await response.arrayBuffer() : null;
  } catch {
    return null;
  }
}
