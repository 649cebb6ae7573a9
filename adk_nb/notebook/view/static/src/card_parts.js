// Kinds of cards, and parts of those of a request.

import { highlighted } from "./chat/code.js";
import { differenceLines } from "./difference.js";
import { el, setAttribute, setLabel } from "./elements.js";
import { errorParts, waitParts } from "./error_cards.js";
import { unsentParts } from "./unsent_card.js";

/** @import { Card, Notice } from "./types" */

/**
 * True for a card that is reduced to one line with the decision.
 *
 * @param {Card} card
 */
export function isDecided(card) {
  return card.state !== "asked" && !asksNothing(card);
}

/** @type {Record<string, (card: Card, open: boolean, act: (decision: string) => void, next: () => void) => Notice>} */
export const NOTICES = { error: errorParts, wait: waitParts, unsent: unsentParts };

/**
 * True for a card that no agent waits for.
 *
 * @param {Card} card
 */
export function asksNothing({ kind }) {
  return kind in NOTICES;
}

/**
 * What a card asks for, behind the name of the agent.
 *
 * @param {Card} card
 */
export function asks({ kind, tool, needs, in_doubt }) {
  if (in_doubt) return ["asks whether to call ", el("b", "", tool), " again, which may have taken effect already"];
  if (kind === "credential") return ["calls ", el("b", "", tool), `, which needs ${needs}`];
  return kind === "input" && !tool ? ["asks"] : ["asks to call ", el("b", "", tool)];
}

/**
 * A document to read before the answer; only the first one is open.
 *
 * @param {{ title: string; text: string }} document
 * @param {number} index
 */
export function documentPart({ title, text }, index) {
  const colours = title.startsWith("code.py") ? highlighted(text, "python") : differenceLines(text);
  const source = el("pre", "json source", ...(colours ?? [text]));
  source.tabIndex = 0;
  setAttribute(source, "role", "group");
  setLabel(source, title);
  const node = el("details", "document", el("summary", "", title), source);
  node.open = index === 0;
  return node;
}

/** @param {string} uri */
export function consentLink(uri) {
  if (!/^https?:/i.test(uri)) return null;
  const link = el("a", "link", `Open ${new URL(uri).host}`);
  link.href = uri;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return el("div", "step", link, el("span", "dim", " and sign in there, then paste the address it leads to:"));
}
