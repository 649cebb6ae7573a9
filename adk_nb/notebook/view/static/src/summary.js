// A finished run is folded to its answer, and a button with counts that shows the rest.

import { isDecided } from "./card_parts.js";
import { dressCode } from "./chat/code.js";
import { Steps } from "./chat/steps.js";
import { isStep, stepOf } from "./chat_turns.js";
import { button, copyButton, el, foldable, put, setExpanded } from "./elements.js";
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
    this.steps = new Steps((change) => change());
    this.words = el("div", "summary");
    this.node = el("div", "over", this.words);
    this.copy = copyButton("Copy", () => this.source);
    this.copy.classList.add("adknb-quiet");
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
    const open = [...this.store.cards.values()].filter((card) => this.store.isOpen(card));
    if (!this.isOver || open.some(({ kind }) => kind !== "unsent")) return false;
    return this.chosen ?? true;
  }

  paint() {
    const { answer, usage } = this.store;
    this.button.hidden = !this.isOver;
    this.button.textContent = `${this.folded ? "▸" : "▾"} ${this.line}`;
    this.copy.hidden = !this.folded || !this.source;
    this.button.title = usage.text;
    setExpanded(this.button, !this.folded);
    if (answer && this.folded && this.drawn !== answer) {
      this.drawn = answer;
      const said = [this.question(answer), ...this.members(answer), this.answer(answer)].filter(
        (part) => part !== null,
      );
      const steps = [...this.store.rows.values()].filter(isStep).map(stepOf);
      const called = said.length > 0 && steps.some((step) => step.kind === "call");
      put(this.words, ...said, this.failures(), called ? this.steps.node : null);
      this.steps.paint(steps, false);
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

  /** The answer as it was written. */
  get source() {
    return [...this.store.rows.values()].findLast((row) => row.kind === "text" && row.text)?.text ?? "";
  }

  /** `Details · 0.6 s · 300 tokens` */
  get line() {
    const { rows, earlier, status, usage } = this.store;
    const parts = [
      "Details",
      [...rows.values()].some((row) => row.kind === "call") ? "" : count(rows.size + earlier, "event"),
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
    return el("div", "asked talk-question", el("div", "talk-mine", foldable(el("div", "text", question))));
  }

  /** @param {Answer} answer */
  members({ members = [] }) {
    return members.map(({ who, text }) => el("div", "member", el("span", "author", who), el("div", "text", text)));
  }

  /** @param {Answer} answer */
  answer({ who, decisions = "", html, pages, shown }) {
    const decided = [...this.store.cards.values()].some(isDecided); // then the cards show the decisions
    const text = markup(decided ? html : decisions + html, this.store.manager);
    const looked = resultPieces(shown);
    text.append(...(pages ?? []).map((page) => isolated(page)), ...(looked ? [looked] : []));
    if (!text.hasChildNodes()) return null; // the answer is in another cell
    dressCode(text, this.source, true);
    const author = who === this.store.title ? null : el("div", "talk-head", el("b", "author", who)); // the head has it
    return el("div", "answered", author, el("div", "talk-text", foldable(text)));
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
