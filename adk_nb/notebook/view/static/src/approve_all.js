// One button for several cards, which is on once each of them has been in sight.

import { button, buttonRow, el, setAttribute } from "./elements.js";

/** @import { Card } from "./types" */
/** @import { View } from "./view.js" */

const WHOLE = 0.95; // the part of a line that counts as all of it

export class ApproveAll {
  /** @param {View} view */
  constructor(view) {
    this.store = view.store;
    this.view = view;
    /** @type {Set<string>} The ends of cards that have been in sight; a tall card is never in sight as a whole. */
    this.seen = new Set();
    /** @type {Map<Element, string>} The ends that are watched. */
    this.watched = new Map();
    this.watcher = new IntersectionObserver((entries) => this.#look(entries), { threshold: WHOLE });
    this.button = button("", "go", () => {
      view.focus.handOn(this.id);
      this.store.approve(this.cards);
    });
    this.hint = el("span", "dim");
    setAttribute(this.hint, "role", "status");
    this.node = el("div", "approve-all", buttonRow(this.button, this.hint));
  }

  /** The open cards that one click can approve as they are. */
  get cards() {
    return [...this.store.cards.values()].filter((card) => canJoin(card) && this.store.isOpen(card));
  }

  /** The id of what the button approves now; another one is a new button. */
  get id() {
    return `all/${this.cards.map(({ id }) => id).join()}`;
  }

  /**
   * Stand below the cards if there are several; the button is added to `nodes`.
   *
   * @param {Map<string, HTMLElement>} nodes Of the open cards, by their ids.
   * @param {HTMLElement} parent
   */
  paint(nodes, parent) {
    const { cards } = this;
    /** @type {Map<Element, string>} */
    const ends = new Map();
    for (const { id } of cards) {
      const node = nodes.get(id);
      if (node?.firstElementChild) ends.set(node.firstElementChild, headOf(id));
      if (node?.lastElementChild) ends.set(node.lastElementChild, buttonsOf(id));
    }
    for (const end of this.watched.keys()) if (!ends.has(end)) this.watcher.unobserve(end);
    for (const end of ends.keys()) if (!this.watched.has(end)) this.watcher.observe(end);
    this.watched = ends;
    this.tell();
    if (cards.length < 2) {
      this.node.remove();
      return;
    }
    if (parent.lastChild !== this.node) parent.append(this.node);
    nodes.set(this.id, this.node);
  }

  // Say what the button would do, and what it waits for.
  tell() {
    const { cards } = this;
    const unseen = cards.filter(({ id }) => !this.seen.has(headOf(id)) || !this.seen.has(buttonsOf(id))).length;
    this.button.textContent = `Approve all ${cards.length}`;
    const edited = cards.some(({ id }) => this.view.cards.forms.has(id));
    this.button.disabled = unseen > 0 || edited;
    this.hint.textContent = edited
      ? "when you have sent or left the open form"
      : unseen
        ? `when you have seen each: ${unseen} not yet in sight`
        : "";
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #look(entries) {
    for (const { target, intersectionRatio } of entries) {
      const end = this.watched.get(target);
      if (end && intersectionRatio >= WHOLE) this.seen.add(end);
    }
    this.tell();
  }

  stop() {
    this.watcher.disconnect();
  }
}

const headOf = (/** @type {string} */ id) => `${id}/head`;
const buttonsOf = (/** @type {string} */ id) => `${id}/buttons`;

/**
 * True for a request that is approved as it was asked for, alone.
 *
 * @param {Card} card
 */
function canJoin({ kind, in_doubt, changed, alike }) {
  return kind === "approval" && !in_doubt && !changed && !alike.length;
}
