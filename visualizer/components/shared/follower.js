/**
 * A follower of a hand: one request at a time, for where the hand is by then. Places that it has left meanwhile are not
 * asked for.
 */
export class Follower {
  /** `ask(place)` returns a promise that is kept once the answer is drawn, or there will be none.
   *  @param {(place: any) => Promise<unknown>} ask */
  constructor(ask) {
    this.ask = ask;
    this.next = null;
    this.isAsking = false;
  }

  /** The hand is at a place. @param {any} place */
  async follow(place) {
    this.next = { place };
    if (this.isAsking) return;
    this.isAsking = true;
    while (this.next) {
      const { place: now } = this.next;
      this.next = null;
      await this.ask(now);
    }
    this.isAsking = false;
  }

  /** The hand has let go, and something else is asked for. */
  stop() {
    this.next = null;
  }
}
