// A finished run is folded to its answer, and a button with counts that shows the rest.

import { isDecided } from "./cards.js";
import { button, el, foldable, put } from "./elements.js";
import { sourceOf } from "./keep.js";
import { isolated, resultPieces, markup } from "./markup.js";
import { clock, count } from "./words.js";

/** @import { Answer } from "./types" */
/** @import { View } from "./view.js" */
/** @import { Store } from "./store.js" */

const MOST_FAILED = 3;

export class Summary {
  /**
   * @param {Store} store
   * @param {View} view
   */
  constructor(store, view) {
    this.store = store;
    this.view = view;
    /** @type {boolean | null} True if the user has folded it; null: no choice yet. */
    this.chosen = null;
    /** @type {Answer | null} */
    this.drawn = null;
    this.words = el("div", "summary");
    this.node = el("div", "over", this.words);
    this.button = button("", "small fold", () => {
      this.chosen = !this.folded;
      if (!this.folded) view.events.toTop();
      view.stale = true;
      view.paint();
    });
  }

  /** True if the run has an answer, and is not in a chat box. */
  get isOver() {
    const { answer, status, box } = this.store;
    return !box && answer !== null && status.status === "done";
  }

  /** True if everything but the answer is hidden. */
  get folded() {
    if (!this.isOver || [...this.store.cards.values()].some((card) => this.store.isOpen(card))) return false;
    return this.chosen ?? true;
  }

  paint() {
    const { answer, usage } = this.store;
    this.button.hidden = !this.isOver;
    this.button.textContent = `${this.folded ? "▸" : "▾"} ${this.line}`;
    this.button.title = usage.text;
    this.button.setAttribute("aria-expanded", String(!this.folded));
    if (answer && this.folded && this.drawn !== answer) {
      this.drawn = answer;
      put(this.words, this.question(answer), ...this.members(answer), this.answer(answer), this.failures());
    }
    this.#paintGraph();
    this.node.hidden = !this.folded || !(this.words.hasChildNodes() || this.hasGraph);
  }

  /** True if the graph stands beside the answer: a workflow is read by the path that its run took. */
  get hasGraph() {
    return this.folded && this.store.drawing?.kind === "workflow";
  }

  #paintGraph() {
    const { picture } = this.view;
    this.node.toggleAttribute("data-graph", this.hasGraph);
    if (this.hasGraph && picture.node.parentNode !== this.node) this.node.prepend(picture.node);
  }

  /** The calls that failed, a line each. */
  failures() {
    const failed = [...this.store.rows.values()].filter(({ kind, ok }) => kind === "call" && ok === false);
    if (!failed.length) return null;
    const shown = failed.slice(-MOST_FAILED).map(({ tool, args, result }) => `✗ ${tool}(${args ?? ""}) → ${result}`);
    if (failed.length > MOST_FAILED) shown.unshift(`${failed.length - MOST_FAILED} more failed, see the events`);
    return el("ul", "failed-calls", ...shown.map((line) => el("li", "", line)));
  }

  /** `1 tool call · 0.6 s · 300 tokens` */
  get line() {
    const { rows, earlier, status, usage } = this.store;
    const calls = [...rows.values()].filter((row) => row.kind === "call").length;
    const parts = [
      calls ? count(calls, "tool call") : count(rows.size + earlier, "event"),
      status.seconds ? seconds(status.seconds) : "",
      usage.tokens ? count(usage.tokens, "token") : "",
    ];
    return parts.filter(Boolean).join(" · ");
  }

  /**
   * The question, unless the source of the cell has it.
   *
   * @param {Answer} answer
   */
  question({ question }) {
    if (!question || isIn(sourceOf(this.store.manager, this.store.own_id), question)) return null;
    return el("div", "asked", el("span", "author", "you"), foldable(el("div", "text", question)));
  }

  /** @param {Answer} answer */
  members({ members = [] }) {
    return members.map(({ who, text }) =>
      el("div", "asked member", el("span", "author", who), el("div", "text", text)),
    );
  }

  /** @param {Answer} answer */
  answer({ who, decisions = "", html, pages, shown }) {
    const decided = [...this.store.cards.values()].some(isDecided); // then the cards show the decisions
    const text = markup(decided ? html : decisions + html, this.store.manager);
    const looked = resultPieces(shown);
    text.append(...(pages ?? []).map((page) => isolated(page)), ...(looked ? [looked] : []));
    if (!text.hasChildNodes()) return null; // the answer is in another cell
    const author = who === this.store.title ? null : el("span", "author", who); // the head of the view has its name
    const node = el("div", "answered", author, foldable(text));
    node.toggleAttribute("data-bare", !author);
    return node;
  }
}

/** @param {number} taken */
const seconds = (taken) => (taken < 60 ? `${Math.max(taken, 0.1).toFixed(1)} s` : clock(taken));

/**
 * True if the cell's source contains the text, ignoring white space.
 *
 * @param {string} source
 * @param {string} text
 */
export function isIn(source, text) {
  const plain = (/** @type {string} */ words) => words.replace(/\s+/g, " ").trim();
  return plain(text) !== "" && plain(source).includes(plain(text));
}
