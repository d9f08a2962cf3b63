import { Foreseen } from "../shared/foreseen.js";

/**
 * Beside the page, which is busy drawing its messages one after the other: hears from the server, or from the page
 * itself, which numbers are drawn next, fetches them, and hands them over in one piece.
 *
 * To the page: {address} when numbers are asked for, then {address, bytes}; null where they did not come, or others
 * were asked for meanwhile.
 */

const AGAIN = 3000; // milliseconds after which a line that was cut is opened again

let controller = new AbortController();
let last = "";
let count = 0; // of what was asked for
/** @type {{ line: string, page: string }} */
let where;
/** @type {WebSocket} */
let socket;
const foreseen = new Foreseen();

/** @param {{line: string, page: string} | {foreseen: string}} said where the line and the page are, or what to fetch */
export function hear(said) {
  if ("line" in said) {
    where = said;
    listen();
  } else {
    foreseen.add(said.foreseen);
    ask(said.foreseen);
  }
}

function listen() {
  const address = new URL(where.line, where.page);
  address.protocol = address.protocol.replace("http", "ws");
  socket = new WebSocket(address);
  socket.onmessage = ({ data }) => foreseen.isOvertaken(data) || ask(data);
  socket.onclose = () => setTimeout(listen, AGAIN);
}

async function ask(address) {
  if (address === last) return;
  last = address;
  controller.abort();
  const { signal } = (controller = new AbortController());
  postMessage({ address });
  if (!address) return;
  count += 1;
  const asked = String(count);
  const bytes = await fetched(new URL(address, where.page), asked, signal);
  postMessage({ address, bytes }, { transfer: bytes ? [bytes] : [] });
  if (socket.readyState === WebSocket.OPEN) socket.send(asked); // the server waits with the page until then
}

async function fetched(address, asked, signal) {
  const headers = { "Headlight-Asked-On": `${where.line.split("/").at(-1)} ${asked}` };
  try {
    const response = await fetch(address, { signal, headers });
    return response.ok ? await response.arrayBuffer() : null;
  } catch {
    return null;
  }
}
