// Cards of errors and busy models, which need no answer.

import { button, buttonRow, el, newId, setAttribute, setExpanded, setLabel } from "./elements.js";

/** @import { Argument, Card, Failure } from "./types" */

/**
 * `In[7] line 4` as a link to that cell, if the page is a notebook.
 *
 * @param {string} where
 */
function cellLink(where) {
  const number = /^In\[(\d+)\]/.exec(where)?.[1];
  if (!number || !document.querySelector(".jp-Notebook")) return el("code", "where", where);
  const node = button(where, "where", () => {
    const prompts = [...(node.closest(".jp-Notebook")?.querySelectorAll(".jp-InputPrompt") ?? [])];
    const cell = prompts.find((prompt) => prompt.textContent.trim() === `[${number}]:`)?.closest(".jp-Cell");
    cell?.scrollIntoView({ block: "center" });
    const editor = cell?.querySelector(".cm-content");
    if (editor instanceof HTMLElement) editor.focus({ preventScroll: true });
  });
  node.title = "Go to that cell";
  return node;
}

/**
 * `rows`: from call_arguments.py, with escapes for invisible characters. `whole`: shows a shortened value in full.
 *
 * @param {Argument[] | null} rows
 * @param {(value: HTMLElement, more: HTMLElement) => void} [whole]
 */
export function argumentList(rows, whole) {
  const each = (rows ?? []).map(({ name, text, left_out, note }) => {
    const value = el("code", "", text);
    const mark = note ? el("span", note === "unknown" ? "bad" : "dim", ` (${note})`) : null;
    /** @type {HTMLElement | null} */
    const more = left_out && whole ? button(`Show all of ${name}`, "small", () => whole(value, more ?? value)) : null;
    return el("span", "arg", el("span", "dim", `${name} `), value, mark, more);
  });
  return each.length ? el("div", "arguments", ...each) : null;
}

/**
 * A traceback, and the button that shows it.
 *
 * @param {string} text
 * @returns {[HTMLElement | null, HTMLElement | null]}
 */
function tracebackParts(text) {
  if (!text) return [null, null];
  const trace = el("pre", "json trace", text);
  trace.hidden = true;
  trace.tabIndex = 0;
  trace.id = newId();
  setAttribute(trace, "role", "group");
  setLabel(trace, "Traceback");
  const toggle = button("Show traceback", "", () => {
    trace.hidden = !trace.hidden;
    toggle.textContent = trace.hidden ? "Show traceback" : "Hide traceback";
    setExpanded(toggle, !trace.hidden);
  });
  setAttribute(toggle, "aria-controls", trace.id);
  setExpanded(toggle, false);
  return [toggle, trace];
}

/**
 * The error of a tool, for the row of its call.
 *
 * @param {Failure} failure
 */
export function toolFailure({ tool, where, arguments: rows, sent, traceback }) {
  const [toggle, trace] = tracebackParts(traceback);
  const head = el("div", "", el("b", "bad", "✗ Error"), " ", el("code", "", tool), " failed", where ? " in " : "");
  if (where) head.append(cellLink(where));
  const response = el("div", "", el("span", "dim", "sent to the model as "), el("code", "", sent));
  return el("div", "failure", head, argumentList(rows), response, toggle ? buttonRow(toggle) : null, trace);
}

/**
 * The parts of the card of a failed turn, and its text for screen readers.
 *
 * @param {Card} card
 * @param {boolean} open
 * @param {(decision: string) => void} act
 */
export function errorParts(card, open, act) {
  const head = el("div", "ask", el("b", "bad", "✗ Error"), ` ${card.title}`);
  const spoken = head.textContent;
  if (card.where) head.append(" in ", cellLink(card.where));
  if (!open) return { head, parts: [], spoken };
  const [toggle, trace] = tracebackParts(card.traceback);
  const ways = [
    card.ways.includes("retry") ? button("Retry", "", () => act("retry")) : null,
    card.ways.includes("drop") ? button("Drop turn", "", () => act("drop")) : null,
  ];
  if (ways[0]) ways[0].title = "Undo the turn, and send its message again";
  if (ways[1]) ways[1].title = "Undo the turn: agents no longer see it";
  return { head, parts: [buttonRow(...ways, toggle), trace ?? ""], spoken };
}

/**
 * The parts of the card of a busy model, with a countdown to the next attempt, or of one that starts.
 *
 * @param {Card} card
 */
export function waitParts(card) {
  if (card.seconds === null || card.seconds === undefined) {
    const head = el("div", "ask", el("span", "icon", "⏳"), ` ${card.title}`);
    return { head, parts: [], spoken: card.title };
  }
  const count = el("span", "count");
  const until = performance.now() + card.seconds * 1000;
  const tick = () => {
    const left = Math.ceil((until - performance.now()) / 1000);
    count.textContent = left > 0 ? `asked again in ${left} s` : "asked again now";
    if (left > 0 && (count.isConnected || !count.dataset.seen)) setTimeout(tick, 250);
    if (count.isConnected) count.dataset.seen = "";
  };
  tick();
  const head = el(
    "div",
    "ask",
    el("span", "icon", "⏳"),
    ` ${card.title}; `,
    count,
    card.hint ? el("span", "dim", ` (${card.hint})`) : "",
  );
  return { head, parts: [], spoken: `${card.title}; ${count.textContent}` };
}
