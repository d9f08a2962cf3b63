/**
 * A line to the server on which pictures are asked for while a hand moves: one answer for each address, in turn. It
 * is opened when it is first wanted, and closed when nobody has asked for a while. Where there is none, requests do.
 */

const UNUSED = 10_000; // milliseconds after which it is closed

/** @type {WebSocket | null} */
let line = null;
let isRefused = false; // as where what is between browser and server passes no such line on
/** @type {((answer: ArrayBuffer | string | null) => void)[]} */
const waiting = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/**
 * The answer to an address: its bytes, or one sentence on what is wrong with it. Null where the line is not open, or is
 * cut before the answer.
 * @param {string} address
 * @returns {Promise<ArrayBuffer | string | null>}
 */
export async function askOnLine(address) {
  if (!line && !isRefused) open();
  if (line?.readyState !== WebSocket.OPEN) return null;
  clearTimeout(timer);
  timer = setTimeout(() => line?.close(), UNUSED);
  const answer = new Promise((resolve) => waiting.push(resolve));
  line.send(address);
  return answer;
}

function open() {
  const address = new URL("followed", document.baseURI);
  address.protocol = address.protocol.replace("http", "ws");
  line = new WebSocket(address);
  line.binaryType = "arraybuffer";
  isRefused = true;
  line.onopen = () => (isRefused = false);
  line.onmessage = ({ data }) => waiting.shift()?.(data);
  line.onclose = () => {
    clearTimeout(timer);
    line = null;
    for (const resolve of waiting.splice(0)) resolve(null);
  };
}
