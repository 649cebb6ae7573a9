// One button for several cards, which is on once each of them has been in sight.

import { button, buttonRow, el } from "./elements.js";

/** @import { Card } from "./types" */
/** @import { View } from "./view.js" */

const WHOLE = 0.95; // the part of a card that counts as all of it
const SCREEN = 0.8; // or the part of the screen that a tall card fills

export class ApproveAll {
  /** @param {View} view */
  constructor(view) {
    this.store = view.store;
    /** @type {Set<string>} Ids of the cards that have been in sight. */
    this.seen = new Set();
    /** @type {Map<string, HTMLElement>} The nodes that are watched, by the ids of their cards. */
    this.watched = new Map();
    this.watcher = new IntersectionObserver((entries) => this.#look(entries), {
      threshold: [0, 0.1, 0.25, 0.5, 0.75, WHOLE, 1],
    });
    this.button = button("", "go", () => {
      view.focus.handOn(this.id);
      this.store.approve(this.cards);
    });
    this.hint = el("span", "dim");
    this.hint.setAttribute("role", "status");
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
    for (const [id, node] of this.watched) {
      if (nodes.get(id) === node) continue;
      this.watcher.unobserve(node);
      this.watched.delete(id);
    }
    for (const { id } of cards) {
      const node = nodes.get(id);
      if (!node || this.watched.has(id) || this.seen.has(id)) continue;
      this.watched.set(id, node);
      this.watcher.observe(node);
    }
    this.#tell();
    if (cards.length < 2) {
      this.node.remove();
      return;
    }
    if (parent.lastChild !== this.node) parent.append(this.node);
    nodes.set(this.id, this.node);
  }

  #tell() {
    const { cards } = this;
    const unseen = cards.filter(({ id }) => !this.seen.has(id)).length;
    this.button.textContent = `Approve all ${cards.length}`;
    this.button.disabled = unseen > 0;
    this.hint.textContent = unseen ? `when you have seen each: ${unseen} not yet in sight` : "";
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #look(entries) {
    for (const { target, intersectionRatio, intersectionRect, rootBounds } of entries) {
      const fills = intersectionRect.height >= SCREEN * (rootBounds?.height ?? window.innerHeight);
      if (intersectionRatio < WHOLE && !fills) continue;
      const id = [...this.watched].find(([, node]) => node === target)?.[0];
      if (id) this.seen.add(id);
    }
    this.#tell();
  }

  stop() {
    this.watcher.disconnect();
  }
}

/**
 * True for a request that is approved as it was asked for, alone.
 *
 * @param {Card} card
 */
function canJoin({ kind, in_doubt, changed, alike }) {
  return kind === "approval" && !in_doubt && !changed && !alike.length;
}
