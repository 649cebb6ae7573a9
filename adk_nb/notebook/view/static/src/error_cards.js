// What went wrong, and what a model that is busy is waited for: cards that ask for nothing.

import { button, el, newId } from "./elements.js";

/** @import { Argument, Card, Failure } from "./types" */

/**
 * `In[7] line 4`: leads to that cell where the page shows it.
 *
 * @param {string} where
 */
function cellLink(where) {
  const number = /^In\[(\d+)\]/.exec(where)?.[1];
  if (!number || !document.querySelector(".jp-Notebook")) return el("code", "where", where);
  const node = button(where, "where", () => {
    const prompts = [...(node.closest(".jp-Notebook")?.querySelectorAll(".jp-InputPrompt") ?? [])];
    const cell = prompts.find((one) => one.textContent.trim() === `[${number}]:`)?.closest(".jp-Cell");
    cell?.scrollIntoView({ block: "center" });
    const editor = cell?.querySelector(".cm-content");
    if (editor instanceof HTMLElement) editor.focus({ preventScroll: true });
  });
  node.title = "Go to that cell";
  return node;
}

/**
 * `rows`: as call_shown.py makes them, with escapes for what cannot be seen. `whole`: shows all of what was shortened.
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
 * The button that shows it, and the traceback.
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
  trace.setAttribute("role", "group");
  trace.setAttribute("aria-label", "Traceback");
  const toggle = button("Show traceback", "", () => {
    trace.hidden = !trace.hidden;
    toggle.textContent = trace.hidden ? "Show traceback" : "Hide traceback";
    toggle.setAttribute("aria-expanded", String(!trace.hidden));
  });
  toggle.setAttribute("aria-controls", trace.id);
  toggle.setAttribute("aria-expanded", "false");
  return [toggle, trace];
}

/**
 * In the row of a call that a tool of the notebook failed.
 *
 * @param {Failure} failure
 */
export function toolFailure({ tool, where, arguments: rows, sent, traceback }) {
  const [toggle, trace] = tracebackParts(traceback);
  const head = el("div", "", el("b", "bad", "✗ Error"), " ", el("code", "", tool), " failed", where ? " in " : "");
  if (where) head.append(cellLink(where));
  const told = el("div", "", el("span", "dim", "sent to the model as "), el("code", "", sent));
  return el("div", "failure", head, argumentList(rows), told, toggle ? el("div", "buttons", toggle) : null, trace);
}

/**
 * A turn that ended with an error. Returns what stands on the card, and what is said of it to those who do not see it.
 *
 * @param {Card} card
 * @param {boolean} open
 * @param {(decision: string) => void} act
 */
export function errorParts(card, open, act) {
  const head = el("div", "ask", el("b", "bad", "✗ Error"), ` ${card.title}`);
  const said = head.textContent;
  if (card.where) head.append(" in ", cellLink(card.where));
  if (!open) return { head, parts: [], said };
  const [toggle, trace] = tracebackParts(card.traceback);
  const ways = [
    card.ways.includes("retry") ? button("Retry", "", () => act("retry")) : null,
    card.ways.includes("drop") ? button("Drop turn", "", () => act("drop")) : null,
  ];
  if (ways[0]) ways[0].title = "Take the turn back and say the same again";
  if (ways[1]) ways[1].title = "Take the turn back: the agent forgets it";
  return { head, parts: [el("div", "buttons", ...ways, toggle), trace ?? ""], said };
}

/**
 * A model that is busy: how long until it is asked again, counted down.
 *
 * @param {Card} card
 */
export function waitParts(card) {
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
  return { head, parts: [], said: `${card.title}; ${count.textContent}` };
}
