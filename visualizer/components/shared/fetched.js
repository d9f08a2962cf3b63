/** @import { MatrixPanel } from "./grid.js" */
/** @import { HeadControls } from "./head_controls.js" */

/** @import { Header, Host, LayersHeader, Mark, Matrix } from "../types.d.ts" */

import { Arrivals } from "./arrivals.js";
import { Dials } from "./dials.js";
import { childrenOf } from "./dom.js";
import { addressOfCell, ExactNumbers } from "./exact.js";
import { Follower } from "./follower.js";
import { addressOfLayers, areFew, layersInTurn, withLayers } from "./layers.js";
import { drawWhenNear } from "./near.js";
import { unpack } from "./payload.js";
import { Picture } from "./picture.js";

/**
 * A picture whose numbers come with its header, or from the address that the header names, once it is near the window.
 * Header and numbers are taken together: until the numbers of a new header are there, the picture stays what it was,
 * words and all.
 * @template {Header} [Data=Header]
 * @extends {Picture<Data>}
 */
export class FetchedPicture extends Picture {
  /** @param {HTMLElement} root @param {Host} host @param {string} name */
  constructor(root, host, name) {
    super(root, host, name);
    this.arrivals = new Arrivals(root);
    this.endings.push(() => this.arrivals.cancel());
    /** @type {{ address: string | null, source: string, isWhole: boolean } | null} */
    this.numbers = null; // what arrived last, the address of the header that it is of, and where it came from
    /** @type {any} */ this.header = null; // what the host said last
    /** @type {{ header: object, addresses: string[] } | null} */ this.request = null; // what was asked for last
  }

  /** Take new bytes: with their numbers, or with the address of these, which are drawn when they are there.
   *  @param {Uint8Array} bytes */
  update(bytes) {
    this.showOf(unpack(bytes));
  }

  /** Draw what a header is of, once its numbers are there. @param {any} header */
  showOf(header) {
    this.header = header;
    const addresses = header.address ? this.addressesOf(header) : [];
    const isUnderWay = this.isUnderWay(addresses);
    if (this.request && isUnderWay) this.request.header = header;
    else this.forgetRequest();
    if (!header.address) this.take(header);
    else if (this.hasNumbersOf(header.address, isUnderWay)) this.take({ ...header, ...this.numbers });
    else if (!isUnderWay) this.fetchNumbers(header, addresses);
  }

  /** True if what is waited for are the numbers of a header, from these addresses in this order.
   *  @param {string[]} addresses */
  isUnderWay(addresses) {
    const asked = this.request?.addresses;
    return Boolean(asked) && this.arrivals.awaited === asked && String(addresses) === String(asked);
  }

  /** @param {string} address @param {boolean} areMoreUnderWay */
  hasNumbersOf(address, areMoreUnderWay) {
    return this.numbers !== null && this.numbers.address === address && (this.numbers.isWhole || areMoreUnderWay);
  }

  /** @param {Header} header @param {string[]} addresses */
  fetchNumbers(header, addresses) {
    const request = (this.request = { header, addresses });
    /** @type {any} */
    let found = null;
    /** @param {Header} answer */
    const takeAnswer = (answer) => {
      const isFirst = !found;
      found = this.joined(found, answer, header);
      this.numbers = { ...found, address: header.address, source: header.address };
      if (isFirst) this.take(/** @type {any} */ ({ ...request.header, ...this.numbers }));
      else this.takeMore();
    };
    if (!this.data) this.setInert(true); // there is nothing to act on yet
    drawWhenNear(this.root, () => this.request === request && this.arrivals.ask(addresses, takeAnswer));
  }

  /** @param {Data} data */
  take(data) {
    if (!this.data) this.setInert(false);
    super.take(data);
  }

  /** @param {boolean} isInert */
  setInert(isInert) {
    for (const part of childrenOf(this.root)) part.inert = isInert && part !== this.arrivals.problem;
  }

  forgetRequest() {
    this.request = null;
    this.arrivals.cancel();
  }

  /** The addresses of a header's numbers, in the order in which they are wanted. @param {Header} header */
  addressesOf(header) {
    return [header.address];
  }

  /** The answers so far: `found`, null before the first answer, with one more answer.
   *  @param {Header | null} found @param {Header} answer @param {Header} _header */
  joined(found, answer, _header) {
    return { ...answer, isWhole: true };
  }

  /** More of the numbers drawn has arrived. */
  takeMore() {
    Object.assign(this.data, this.numbers);
  }
}

/**
 * The same for a picture of the heads of every layer, with `controls` (`HeadControls`): the layer shown is fetched
 * first, and drawn while the others are under way. Dials that a person turns ask for the numbers of where they stand.
 * @template {LayersHeader} Data
 * @extends {FetchedPicture<Data>}
 */
export class LayeredPicture extends FetchedPicture {
  /** @type {HeadControls} */ controls;

  /** @param {HTMLElement} root @param {Host} host @param {string} name */
  constructor(root, host, name) {
    super(root, host, name);
    const follower = new Follower((address) => this.askTurned(address));
    const turn = () => {
      this.controls.events.count();
      const { dial_address: address } = this.data; // none where no link carries what is shown
      if (address) follower.follow(this.dials.addressFrom(address));
    };
    this.dials = new Dials({ turn, rest: (/** @type {string} */ dial, /** @type {any} */ value) => this.controls.rest(dial, value) });
    this.exact = new ExactNumbers();
    this.endings.push(() => this.exact.forget());
  }

  get seen() {
    const { layer, head, looks } = this.controls;
    return { layer, head, looks };
  }

  get figureTitle() {
    const name = this.controls.layerName();
    return name.charAt(0).toUpperCase() + name.slice(1);
  }

  /** The cell of a panel is pointed at: its exact numbers in some matrices are said as well, once they are there.
   *  @param {MatrixPanel} panel @param {Record<string, Matrix>} matrices @param {number} head @param {number} row
   *  @param {number} column @param {() => void} say */
  wantExact(panel, matrices, head, row, column, say) {
    const { source, columns } = this.data;
    const address = source ? addressOfCell(source, this.controls.layer, [head, row, column]) : "";
    const sayAgain = () => {
      say();
      panel.sayCursor();
    };
    this.exact.want({ address, matrices, index: row * columns.labels.length + column, say: sayAgain });
  }

  /** After Back, with the dials as the host has them, whose numbers may not be drawn any more. */
  takeBack() {
    if (this.header && this.controls.events.isAhead(this.header.seq)) this.showOf(this.header);
  }

  /** @param {Mark[]} marks */
  hear(marks) {
    this.exact.forget();
    super.hear(marks);
  }

  /** Draw the numbers of where the dials stand: of every layer where they are few, else of the one shown.
   *  @param {string} address */
  async askTurned(address) {
    const { layer, size } = this.controls;
    const isSmall = areFew(this.countNumbers());
    await this.arrivals.follow(isSmall ? address : addressOfLayers(address, [layer]), (answer) => {
      this.numbers = { ...withLayers(null, answer, size.layers), address: null, source: address };
      this.take({ ...this.headerWith(this.data, answer), ...this.numbers, isTurned: true });
    });
  }

  /** The count of the picture's numbers, in all layers. */
  countNumbers() {
    const { layers, heads, rows, columns } = this.controls.size;
    return layers * heads * rows * columns;
  }

  /** A header with what an answer says of its numbers: padding makes other tokens, and heads have names of their own.
   *  @param {Data} header @param {Header} answer @returns {Data} */
  headerWith(header, { rows, columns, layers, head_names }) {
    /** @param {number} layer */
    const namesOf = (layer) => head_names[layers.indexOf(layer)] ?? head_names[0];
    return { ...header, rows, columns, head_names: [...header.head_names.keys()].map(namesOf) };
  }

  /** @param {LayersHeader & { address: string }} header */
  addressesOf(header) {
    const { address, head_names: names, rows, columns } = header;
    const nNumbers = names[0].length * rows.labels.length * columns.labels.length;
    const inTurn = layersInTurn(this.controls.layerAfter(header, names.length), [...names.keys()], nNumbers);
    return inTurn.map((layers) => addressOfLayers(address, layers));
  }

  /** @param {Header | null} found @param {Header} answer @param {Header} header */
  joined(found, answer, header) {
    return withLayers(found, answer, header.head_names.length);
  }

  takeMore() {
    const wasWaiting = !this.data.arrived?.has(this.controls.layer);
    super.takeMore();
    this.receiveMore();
    if (wasWaiting) this.redraw();
    else if (this.width) this.drawMore();
  }

  /** The layers that are not shown have arrived: `this.data` has them. */
  receiveMore() {}

  /** Draw what shows all layers. */
  drawMore() {}

  /** Draw, unless the numbers of the layer chosen have not arrived. */
  redraw() {
    if (this.data.arrived?.has(this.controls.layer) ?? true) super.redraw();
  }
}
