// The table of the calls that one card asks for: alike ones are a row, with a tick.

import { button, el, put, setAttribute, setLabel } from "./elements.js";
import { count as counted } from "./words.js";

/** @import { AlikeCalls, Card } from "./types" */

const SEARCHED = 8; // rows from which there is a field to search them

/** @param {AlikeCalls[]} rows */
const total = (rows) => rows.reduce((sum, { count }) => sum + count, 0);

/** @param {AlikeCalls} row */
const argumentsText = ({ arguments: each }) => each.map(({ name, text }) => `${name}=${text}`).join(", ");

export class AlikeTable {
  /**
   * `whole`: gives the whole values of all rows, by their keys.
   *
   * @param {Card} card
   * @param {(then: (values: Record<string, string[]>) => void) => void} whole
   */
  constructor(card, whole) {
    this.rows = card.alike;
    this.keys = card.alike.map(({ key }) => key).join();
    this.whole = whole;
    /** @type {() => void} */
    this.changed = () => {};
    /** @type {Map<AlikeCalls, HTMLInputElement>} */
    this.ticks = new Map();
    /** @type {Map<AlikeCalls, HTMLElement>} */
    this.lines = new Map();
    const names = [...new Set(this.rows.flatMap((row) => row.arguments.map(({ name }) => name)))];
    const asks = this.rows.some(({ hint }) => hint);
    this.all = this.#tick("all", () => {
      for (const [row, tick] of this.ticks) if (!this.lines.get(row)?.hidden) tick.checked = this.all.checked;
    });
    const head = ["calls", ...names, ...(asks ? ["asks"] : [])].map((name) => el("th", "", name));
    const body = this.rows.map((row) => this.#line(row, names, asks));
    const table = el("table", "alike", el("thead", "", el("tr", "", el("th", "", this.all), ...head)));
    table.append(el("tbody", "", ...body));
    this.count = el("div", "dim");
    setAttribute(this.count, "role", "status");
    const scroll = el("div", "alike-scroll", table);
    scroll.tabIndex = 0;
    setAttribute(scroll, "role", "group");
    setLabel(scroll, `calls of ${card.tool}`);
    this.node = el("div", "", this.rows.length >= SEARCHED ? this.#search() : null, scroll, this.count);
    this.#tell();
  }

  /** How many calls are ticked. */
  get total() {
    return total(this.rows.filter((row) => this.ticks.get(row)?.checked));
  }

  /** Keys of the ticked rows. */
  get ticked() {
    return this.rows.filter((row) => this.ticks.get(row)?.checked).map(({ key }) => key);
  }

  /**
   * @param {string} label
   * @param {() => void} then
   */
  #tick(label, then) {
    const tick = el("input", "tick");
    tick.type = "checkbox";
    tick.checked = true;
    setLabel(tick, label);
    tick.addEventListener("change", () => {
      then();
      this.#tell();
    });
    return tick;
  }

  /**
   * @param {AlikeCalls} row
   * @param {string[]} names
   * @param {boolean} asks
   */
  #line(row, names, asks) {
    const tick = this.#tick(argumentsText(row), () => {});
    const cells = names.map((name) => {
      const place = row.arguments.findIndex((each) => each.name === name);
      return el("td", "", place < 0 ? null : this.#value(row, place));
    });
    const line = el("tr", "", el("td", "", tick), el("td", "count", row.count.toLocaleString("en")), ...cells);
    if (asks) line.append(el("td", "hint", row.hint));
    this.ticks.set(row, tick);
    this.lines.set(row, line);
    return line;
  }

  /**
   * @param {AlikeCalls} row
   * @param {number} place
   */
  #value(row, place) {
    const { name, text, left_out } = row.arguments[place];
    const value = el("code", "", text);
    if (!left_out) return value;
    const more = button(`Show all of ${name}`, "small", () => {
      this.whole((values) => {
        value.textContent = values[row.key][place];
        more.remove();
      });
    });
    return el("div", "", value, " ", more);
  }

  #search() {
    const field = el("input", "input");
    field.type = "search";
    field.placeholder = "search these calls";
    setLabel(field, "search these calls");
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      for (const [row, line] of this.lines) {
        const text = `${argumentsText(row)} ${row.hint}`.toLowerCase();
        line.hidden = !words.every((word) => text.includes(word));
      }
      this.#tell();
    });
    return el("div", "alike-search", field);
  }

  #tell() {
    const shown = this.rows.filter((row) => !this.lines.get(row)?.hidden);
    const ticked = this.rows.filter((row) => this.ticks.get(row)?.checked);
    const inSight = shown.filter((row) => this.ticks.get(row)?.checked).length;
    this.all.checked = shown.length > 0 && inSight === shown.length;
    this.all.indeterminate = inSight > 0 && inSight < shown.length;
    const found = shown.length < this.rows.length ? `; ${shown.length} of ${this.rows.length} rows found` : "";
    put(
      this.count,
      `${total(ticked).toLocaleString("en")} of ${total(this.rows).toLocaleString("en")} calls ticked${found}`,
    );
    this.changed();
  }
}

/**
 * @param {Card} card
 * @param {number} [calls] How many a yes is for.
 */
export function approveLabel({ action = "Approve", alike }, calls = alike[0]?.count ?? 1) {
  return calls < 2 ? action : `${action} ${counted(calls, "call")}`;
}

/**
 * What a decision was about: `3 × pay(to="ada", amount=5)`, a line for each kind of calls.
 *
 * @param {Card} card
 */
export function decidedCalls(card) {
  const lines = card.alike.map((row) => {
    const times = row.count > 1 ? `${row.count.toLocaleString("en")} × ` : "";
    return el("div", "", times, el("code", "", `${card.tool}(${argumentsText(row)})`));
  });
  return el("div", "decided-calls", ...lines);
}

/**
 * `4 calls of pay`.
 *
 * @param {Card} card
 */
export function decidedSubject(card) {
  return [`${counted(total(card.alike), "call")} of `, el("code", "", card.tool)];
}
