// The card of a message that was not sent, since an earlier one waits for an answer.

import { button, buttonRow, el } from "./elements.js";

/** @import { Card } from "./types" */

/**
 * The parts of the card, with both messages, and its text for screen readers.
 *
 * @param {Card} card
 * @param {boolean} open
 * @param {(decision: string) => void} act
 * @param {() => void} answerFirst
 */
export function unsentParts(card, open, act, answerFirst) {
  const [waiting, text] = card.texts ?? [];
  const isFree = card.ways.includes("send");
  const isLost = card.state === "stale";
  const title = open || isLost ? card.title : "Your new message";
  const head = el("div", "ask", el("span", "icon", open ? "✉" : ""), ` ${title}`);
  const line = (/** @type {string} */ label, /** @type {string} */ message) =>
    el("div", "kept", el("span", "dim", label), " ", el("span", "kept-text", message));
  const waits = isFree ? "" : line("Waits for your answer:", waiting);
  const said = line("New:", text);
  const ways = [
    card.ways.includes("refuse") ? button("Reject that and send this", "replace", () => act("refuse")) : null,
    card.ways.includes("first") ? button("Answer first", "first", answerFirst) : null,
    isFree ? button("Send it now", "go", () => act("send")) : null,
  ];
  return {
    head,
    parts: open ? [waits, said, buttonRow(...ways)] : isLost ? [said] : [],
    spoken: `${card.title}: ${text}`,
  };
}
