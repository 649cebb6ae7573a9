/**
 * What the kernel of a notebook knows of the names in its cells.
 *
 * A request goes out some time after a cell has changed to one with new names, and after cells have run, and never more
 * than one at a time. A kernel without adk_nb answers that it knows nothing of the kind; then nothing is marked.
 */

const DELAY_MS = 400;
const MOST_NAMES = 500;

/** @typedef {{wanted(): [string, string][], refresh(): void}} Reader */
/** @typedef {(names: Record<string, string[]>) => Promise<Record<string, string[]> | null>} LookUp */

export class Names {
  /** @param {LookUp} lookUp Asks the kernel which of the names, by kind, it knows; null: it cannot say. */
  constructor(lookUp) {
    this._lookUp = lookUp;
    /** @type {Set<Reader>} */
    this._readers = new Set();
    /** @type {Map<string, boolean | undefined>} */
    this._known = new Map();
    this._isStale = false;
    this._isAsking = false;
    this._isAskedAgain = false;
    /** Counts the kernels; an answer of an earlier one is dropped. */
    this._kernel = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._timer = undefined;
  }

  /** @param {Reader} reader A view that shows names; its `wanted()` may have changed. */
  join(reader) {
    this._readers.add(reader);
    if (this._missing().length > 0) this._askSoon();
  }

  /** @param {Reader} reader */
  leave(reader) {
    this._readers.delete(reader);
  }

  /**
   * @param {string} kind
   * @param {string} name
   * @returns {boolean | undefined} Undefined: the kernel has not said.
   */
  isKnown(kind, name) {
    return this._known.get(`${kind} ${name}`);
  }

  /** Ask anew: cells have run. What was answered counts until then. */
  expire() {
    this._isStale = true;
    this._askSoon();
  }

  /** Forget all answers: the kernel is another one. */
  forget() {
    this._kernel += 1;
    this._isAsking = this._isAskedAgain = false;
    this._known.clear();
    for (const reader of [...this._readers]) reader.refresh();
  }

  dispose() {
    this._kernel += 1;
    clearTimeout(this._timer);
    this._readers.clear();
  }

  _missing() {
    const wanted = [...this._readers].flatMap((reader) => reader.wanted());
    return this._isStale ? wanted : wanted.filter(([kind, name]) => !this._known.has(`${kind} ${name}`));
  }

  _askSoon() {
    clearTimeout(this._timer);
    if (this._readers.size > 0) this._timer = setTimeout(() => void this._ask(), DELAY_MS);
  }

  async _ask() {
    if (this._isAsking) {
      this._isAskedAgain = true;
      return;
    }
    const names = this._missing().slice(0, MOST_NAMES);
    if (names.length === 0) return;
    const kinds = /** @type {Record<string, string[]>} */ ({});
    for (const [kind, name] of names) (kinds[kind] ??= []).push(name);
    const [isAnew, kernel] = [this._isStale, this._kernel];
    this._isAsking = true;
    this._isStale = this._isAskedAgain = false;
    const answer = await this._lookUp(kinds).catch(() => null);
    if (kernel !== this._kernel) return;
    this._isAsking = false;
    if (isAnew) this._known.clear();
    for (const [kind, name] of names) this._known.set(`${kind} ${name}`, answer?.[kind]?.includes(name));
    for (const reader of [...this._readers]) reader.refresh();
    if (this._isAskedAgain) this._askSoon();
  }
}
