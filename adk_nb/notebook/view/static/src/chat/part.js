// What an agent says: its name, the steps that it needed, its text, and pictures and tables.

import { el, put, setAttribute, setLabel } from "../elements.js";
import { Growing, isolated, markup, resultPieces } from "../markup.js";
import { dressCode } from "./code.js";
import { Steps } from "./steps.js";

/** @import { Host, Part } from "./types" */

export class PartNode {
  /**
   * @param {Pick<Host, "drawn">} host
   * @param {(change: () => void) => void} unfold
   */
  constructor(host, unfold) {
    this.host = host;
    /** @type {Growing | null} */
    this.growing = null;
    this.drawn = "";
    this.head = el("div", "talk-head");
    this.text = el("div", "talk-text");
    this.steps = new Steps(unfold);
    this.node = el("div", "talk-part", this.head, this.text, this.steps.node);
  }

  /**
   * @param {Part} part
   * @param {{model: string, named: boolean, running: boolean}} options `named`: with the name of who says it.
   */
  paint(part, { model, named, running }) {
    this.node.dataset.kind = part.kind;
    this.head.hidden = !named || !part.who;
    if (named) put(this.head, el("b", "", part.who), model ? el("span", "talk-model", model) : null);
    this.steps.paint(part.steps, running);
    const { text, html, tail, streaming, pieces, pages } = part;
    this.text.hidden = !text && !html && !pieces.length && !pages.length;
    if (streaming && html !== null) {
      this.#grow(part);
      return;
    }
    const drawn = [text.length, html?.length, tail.length, pieces.length, pages.length, streaming].join();
    if (this.drawn === drawn && !this.growing) return;
    this.drawn = drawn;
    this.growing = null;
    const words = html === null ? el("div", "text", text) : markup(html + tail, null);
    put(this.text, text || html ? words : null, ...pages.map((page) => isolated(page)), resultPieces(pieces));
    this.#dress(words, text, true);
  }

  /** @param {Part} part */
  #grow(part) {
    if (!this.growing) {
      this.growing = new Growing(null);
      put(this.text, this.growing.node);
    }
    this.growing.paint(part);
    this.#dress(this.growing.node, part.text, false);
  }

  /**
   * @param {HTMLElement} words
   * @param {string} source
   * @param {boolean} isOver
   */
  #dress(words, source, isOver) {
    dressCode(words, source, isOver);
    for (const table of words.querySelectorAll(".adknb-wide:not([tabindex])")) {
      setAttribute(table, "tabindex", "0"); // a wide one is scrolled
      setAttribute(table, "role", "group");
      setLabel(table, "Table");
    }
    this.host.drawn(words);
  }
}
