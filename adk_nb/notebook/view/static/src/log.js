// The log of a run's events, a row each.

import { el, put, setAttribute, setExpanded, setLabel } from "./elements.js";
import { sourceOf } from "./keep.js";
import { Growing, isMarkup, isolated, resultPieces, markup } from "./markup.js";
import { RowDetail } from "./row_detail.js";
import { isIn } from "./summary.js";
import { authorOf, rowLine } from "./row_text.js";
import { clock, duration } from "./words.js";

/** @import { Op, Row } from "./types" */
/** @import { View } from "./view.js" */
/** @import { Store } from "./store.js" */

const STALLED = 3; // seconds without text in which a model may think

/**
 * @typedef {object} Drawn A row on the page.
 * @property {HTMLElement} node
 * @property {Growing | null} growing
 * @property {Text | null} text
 * @property {number} length Length of the displayed text.
 * @property {HTMLElement} ms
 * @property {boolean} waits True for a call without a result.
 */

export class Events {
  /**
   * @param {Store} store
   * @param {View} view
   * @param {(id: string) => boolean} [includes] True for the ids of the rows of this log; all without it.
   */
  constructor(store, view, includes = () => true) {
    this.store = store;
    this.view = view;
    this.includes = includes;
    /** @type {Map<string, Drawn>} */
    this.nodes = new Map();
    /** @type {Set<string>} */
    this.open = new Set();
    /** @type {Set<string>} */
    this.dirty = new Set();
    /** @type {string | null} */
    this.selected = null;
    this.reading = false; // true after a row was opened: do not scroll it away
    this.longest = 0; // letters of the longest author
    this.words = ""; // the filter, in lower case
    /** @type {string | undefined} Source of the view's cell. */
    this.source = undefined;
    this.details = new RowDetail(store);
    this.earlier = el("div", "earlier");
    this.node = el("div", "log", this.earlier);
    setAttribute(this.node, "role", "log");
    setAttribute(this.node, "aria-live", "off"); // see announce.js
    setLabel(this.node, "Events");
    this.node.addEventListener("keydown", (event) => this.onKey(event));
    this.node.addEventListener("click", (event) => this.onClick(event));
  }

  reset() {
    for (const id of this.store.rows.keys()) this.mark(id);
  }

  /** @param {Op} op */
  touch(op) {
    const id = op.id ?? op.row?.id;
    if (op.failure ?? op.row?.failure) this.open.add(id); // show errors unfolded
    if (op.op === "append" || op.op === "text") this.dirty.add(id);
    else if (op.op === "patch") this.#patched(op);
    else if (op.op === "state") this.mark(op.event);
    else if (op.op === "panel" && op.name === "event") this.reread(op.id);
    else if (op.op === "offers") this.reset();
    else if (op.op === "status") this.#statusChanged();
  }

  /** @param {Op} op */
  #patched(op) {
    this.mark(op.id);
    const row = this.store.rows.get(op.id);
    if (row && this.open.has(op.id) && !op.failure) this.details.request(row);
  }

  #statusChanged() {
    for (const [id, { text, growing, waits }] of this.nodes) if (text || growing || waits) this.mark(id);
    this.narrow(this.words);
  }

  /**
   * Redraw an opened row without scrolling.
   *
   * @param {string} id
   */
  reread(id) {
    this.reading = true;
    this.mark(id);
  }

  /** @param {string} id */
  mark(id) {
    const drawn = this.nodes.get(id);
    if (drawn) Object.assign(drawn, { text: null, growing: null }); // redraw the whole row, not only its end
    this.dirty.add(id);
  }

  paint() {
    const { node, store } = this;
    const follows = !this.reading && node.scrollHeight - node.scrollTop - node.clientHeight < 24;
    this.reading = false;
    for (const id of this.dirty) if (this.includes(id)) this.paintRow(store.rows.get(id), id);
    this.dirty.clear();
    this.forget();
    node.toggleAttribute("data-long", this.nodes.size > 50);
    this.earlier.textContent = store.earlier ? `${store.earlier} earlier rows` : "";
    if (!this.nodes.has(this.selected ?? "")) this.#selectFirst();
    const bottom = follows && (store.box || store.status.status !== "done"); // a finished log is read from the top
    return () => {
      if (bottom) node.scrollTop = node.scrollHeight;
    };
  }

  #selectFirst() {
    const first = [...this.nodes].find(([, { node }]) => !node.hidden);
    this.select(first?.[0] ?? null, false);
  }

  forget() {
    if (this.nodes.size === this.store.rows.size) return;
    for (const [id, { node }] of this.nodes) {
      if (this.store.rows.has(id)) continue;
      node.remove();
      this.nodes.delete(id);
      this.open.delete(id);
    }
  }

  /**
   * @param {Row | undefined} row
   * @param {string} id
   */
  paintRow(row, id) {
    if (!row) return;
    const drawn = this.nodes.get(id);
    if (drawn && row.streaming && this.#grow(drawn, row)) return;
    const node = drawn?.node ?? el("div", "row");
    this.#label(node, row);
    const what = el("div", "what");
    const growing = row.streaming && isMarkup(row) ? new Growing(this.store.manager) : null;
    const text = growing ? null : this.fill(what, row);
    if (growing) what.append(growing.node);
    growing?.paint(row);
    const more = this.details.exists(row) ? this.disclosure(row) : el("span", "more");
    const ms = this.numbers(row);
    put(node, more, this.author(row, drawn), what, ms, this.detail(row));
    if (!drawn) this.node.append(node);
    const waits = row.kind === "call" && row.result === null && row.ok === null;
    this.nodes.set(id, { node, growing, text: row.streaming ? text : null, length: row.text.length, ms, waits });
  }

  /**
   * @param {HTMLElement} node
   * @param {Row} row
   */
  #label(node, row) {
    node.dataset.id = row.id;
    node.dataset.kind = row.kind;
    if (row.lane) node.dataset.lane = String(this.view.lanes.color(row.lane));
    node.tabIndex = row.id === this.selected ? 0 : -1;
    setAttribute(node, "aria-busy", String(Boolean(row.streaming)));
    node.hidden = !this.fits(row) || this.#isInTheCell(row);
  }

  /**
   * Add new text to a streaming row; returns false if the row has to be redrawn.
   *
   * @param {Drawn} drawn
   * @param {Row} row
   */
  #grow(drawn, row) {
    if (drawn.growing) drawn.growing.paint(row);
    else if (drawn.text) {
      drawn.text.appendData(row.text.slice(drawn.length));
      drawn.length = row.text.length;
    } else return false;
    drawn.ms.textContent = "";
    return true;
  }

  /** Update the seconds of running tools, and of answers without new text. */
  tick() {
    for (const [id, { ms, waits }] of this.nodes) {
      const row = this.store.rows.get(id);
      if (!row || !(waits || row.streaming)) continue;
      const silence = this.store.silence(id);
      if (waits && silence >= 1) ms.textContent = clock(silence);
      else if (row.streaming) ms.textContent = silence >= STALLED ? `no text for ${clock(silence)}` : "";
    }
  }

  /**
   * The author of a row. All authors have the width of the longest; a repeated one is hidden by its style.
   *
   * @param {Row} row
   * @param {Drawn | undefined} drawn
   */
  author(row, drawn) {
    const name = authorOf(row);
    const node = el("span", "author", name);
    const before = drawn ? drawn.node.previousElementSibling : this.node.lastElementChild;
    node.toggleAttribute("data-again", before?.querySelector(".adknb-author")?.textContent === name);
    node.title = name;
    if (name.length > this.longest) {
      this.longest = name.length;
      this.node.style.setProperty("--adknb-author-letters", String(name.length));
    }
    return node;
  }

  /**
   * The duration and the tokens.
   *
   * @param {Row} row
   */
  numbers(row) {
    const node = el("span", "ms", duration(row.ms));
    if (row.usage) {
      // In the row of a call they are of the model that asked for it, not of its tool.
      node.append(el("div", "tokens", row.kind === "call" ? `asked with ${row.usage.text}` : row.usage.text));
      node.title = row.usage.title;
    }
    return node;
  }

  /**
   * @param {HTMLElement} what
   * @param {Row} row
   */
  fill(what, row) {
    if (row.kind === "call") {
      this.fillCall(what, row);
      return null;
    }
    if (row.kind === "error") what.append(el("span", "label bad", "✗ "));
    if (row.kind === "thought") what.append(el("span", "label dim", "thought "));
    if (isMarkup(row)) {
      const words = markup(row.html + (row.tail ?? ""), this.store.manager);
      what.append(words, ...(row.pages ?? []).map((page) => isolated(page)));
      what.append(resultPieces(row.shown) ?? "");
      return null;
    }
    const text = document.createTextNode(row.text);
    what.append(el("span", "text", text));
    if (row.streaming) what.append(el("span", "caret", "▌"));
    what.append(resultPieces(row.shown) ?? "");
    return text;
  }

  /**
   * @param {HTMLElement} what
   * @param {Row} row
   */
  fillCall(what, row) {
    what.append(
      el("span", "icon", "⚙"),
      "\u00a0",
      el("span", "call", row.tool, "(", el("wbr", ""), el("span", "args", row.args), ")"),
    );
    if (row.text) what.append(" ", el("span", "text", row.text));
    if (row.result === null && row.ok === null) {
      if (this.store.status.status === "running") what.append(" ", el("span", "dim", "…"));
      return;
    }
    const sign = row.ok === false ? el("span", "bad", "✗ failed") : row.ok ? el("span", "good", "✓") : null;
    what.append(" ", sign ?? "→", " ", el("span", "result", row.result), resultPieces(row.shown) ?? "");
  }

  /** @param {Row} row */
  disclosure(row) {
    const open = this.open.has(row.id);
    const node = el("button", "more", open ? "▾" : "▸");
    node.type = "button";
    node.tabIndex = -1;
    setExpanded(node, open);
    setLabel(node, "details");
    return node;
  }

  /** @param {Row} row */
  detail(row) {
    return this.open.has(row.id) ? this.details.node(row) : null;
  }

  /**
   * @param {string} id
   * @param {boolean} [open]
   */
  toggle(id, open = !this.open.has(id)) {
    const row = this.store.rows.get(id);
    if (!row || !this.details.exists(row)) return;
    if (open) this.open.add(id);
    else this.open.delete(id);
    if (open) this.details.request(row);
    this.reread(id);
    this.view.schedule();
  }

  /**
   * Show only rows that contain these words.
   *
   * @param {string} words
   */
  narrow(words) {
    this.words = words.trim().toLowerCase();
    for (const [id, { node }] of this.nodes) {
      const row = this.store.rows.get(id);
      node.hidden = !row || !this.fits(row) || this.#isInTheCell(row);
    }
    this.view.schedule();
  }

  /** @param {Row} row */
  fits(row) {
    return !this.words || rowLine(row).toLowerCase().includes(this.words);
  }

  /** The rows that match the filter. */
  matches() {
    return [...this.store.rows.values()].filter((row) => this.fits(row));
  }

  /**
   * True for a message that is in the source of the cell, while the run is not over.
   *
   * @param {Row} row
   */
  #isInTheCell(row) {
    if (row.kind !== "user" || row.author !== "user" || this.store.box) return false;
    if (!["running", "pending"].includes(this.store.status.status)) return false;
    this.source ??= sourceOf(this.store.manager, this.store.own_id);
    return isIn(this.source, row.text);
  }

  toTop() {
    this.node.scrollTop = 0;
  }

  /**
   * Open the row of an event, and scroll to it.
   *
   * @param {string} event
   */
  reveal(event) {
    const id = [...this.nodes.keys()].findLast((each) => each === event || each.startsWith(`${event}/`));
    if (!id) return;
    this.select(id);
    this.toggle(id, true);
    this.nodes.get(id)?.node.scrollIntoView({ block: "nearest" });
  }

  /**
   * @param {string | null} id
   * @param {boolean} [focus]
   */
  select(id, focus = true) {
    const before = this.nodes.get(this.selected ?? "")?.node;
    if (before) before.tabIndex = -1;
    this.selected = id;
    const node = this.nodes.get(id ?? "")?.node;
    if (!node) return;
    node.tabIndex = 0;
    if (focus) node.focus();
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const { target } = event;
    if (!(target instanceof Element) || target.closest("a")) return;
    const node = target.closest(".adknb-row");
    if (!(node instanceof HTMLElement) || !node.dataset.id) return;
    this.select(node.dataset.id, Boolean(target.closest(".adknb-more")));
    const inside = target.closest(".adknb-detail");
    if (target.closest("button") ? !inside : !inside && !String(getSelection())) this.toggle(node.dataset.id);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (
      ["Enter", " "].includes(event.key) &&
      event.target instanceof Element &&
      event.target.closest("a, .adknb-detail")
    ) {
      event.stopPropagation();
      return;
    }
    if (!this.#move(event.key) && !this.#act(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} key */
  #move(key) {
    const all = [...this.nodes].filter(([, { node }]) => !node.hidden).map(([id]) => id);
    const at = all.indexOf(this.selected ?? "");
    /** @type {Record<string, number>} */
    const moves = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: all.length - 1 };
    if (!(key in moves)) return false;
    this.select(all[Math.min(all.length - 1, Math.max(0, moves[key]))] ?? null);
    return true;
  }

  /** @param {string} key */
  #act(key) {
    if (key === "Escape") this.view.leave();
    else if (!this.selected) return false;
    else if (key === "Enter") this.toggle(this.selected);
    else if (key === "ArrowRight") this.toggle(this.selected, true);
    else if (key === "ArrowLeft") this.toggle(this.selected, false);
    else return false;
    return true;
  }
}
