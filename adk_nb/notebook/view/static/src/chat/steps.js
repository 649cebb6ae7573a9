// What an answer needed, folded to a line: `used get_weather · 0.4 s`.

import { el, newId, put, setAttribute, setExpanded } from "../elements.js";
import { count, duration } from "../words.js";

/** @import { Step } from "./types" */

/** @param {Step} step */
const runs = (step) => step.kind === "call" && step.result === null && step.ok === null && !step.text;

/**
 * The line of the fold.
 *
 * @param {Step[]} steps
 * @param {boolean} running
 */
export function stepsLine(steps, running) {
  const calls = steps.filter((step) => step.kind === "call");
  const working = running ? calls.filter(runs) : [];
  if (working.length) return `calling ${[...new Set(working.map((step) => step.tool))].join(", ")} …`;
  if (!calls.length) return steps.some((step) => step.kind === "thought") ? "thought about it" : steps[0].text;
  const tools = new Set(calls.map((step) => step.tool));
  const [tool] = tools;
  const used = tools.size > 1 ? `used ${count(tools.size, "tool")}` : `used ${tool}`;
  const times = calls.length > tools.size ? count(calls.length, "call") : "";
  const failed = calls.filter((step) => step.ok === false).length;
  const took = calls.reduce((sum, step) => sum + (step.ms ?? 0), 0);
  const parts = [
    used,
    times,
    failed ? `${failed} failed` : "",
    took >= 10 ? `${(took / 1000).toFixed(took < 100 ? 2 : 1)} s` : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

export class Steps {
  /** @param {(change: () => void) => void} unfold Called to change the height of the fold. */
  constructor(unfold) {
    this.open = false;
    /** @type {Step[]} */
    this.steps = [];
    this.line = el("span", "talk-steps-line");
    this.arrow = el("span", "talk-arrow", "▸");
    setAttribute(this.arrow, "aria-hidden", "true");
    this.button = el("button", "talk-steps-button", this.arrow, this.line);
    this.button.type = "button";
    this.button.addEventListener("click", () =>
      unfold(() => {
        this.open = !this.open;
        this.#paintBody();
      }),
    );
    this.body = el("div", "talk-steps-body");
    this.body.id = newId();
    setAttribute(this.button, "aria-controls", this.body.id);
    this.node = el("div", "talk-steps", this.button, this.body);
    this.#paintBody();
  }

  /**
   * @param {Step[]} steps
   * @param {boolean} running
   */
  paint(steps, running) {
    this.node.hidden = !steps.length;
    if (!steps.length) return;
    this.steps = steps;
    this.line.textContent = stepsLine(steps, running);
    this.node.toggleAttribute("data-running", running && steps.some(runs));
    this.node.toggleAttribute(
      "data-failed",
      steps.some((step) => step.ok === false),
    );
    this.#paintBody();
  }

  #paintBody() {
    this.arrow.textContent = this.open ? "▾" : "▸";
    setExpanded(this.button, this.open);
    this.body.hidden = !this.open;
    if (this.open) put(this.body, ...this.steps.map(stepNode));
  }
}

/** @param {Step} step */
function stepNode(step) {
  if (step.kind !== "call") return el("div", `talk-step talk-step-${step.kind}`, step.text);
  const sign = step.ok === false ? el("span", "bad", "failed") : null;
  const took = duration(step.ms);
  const head = el(
    "div",
    "talk-step-call",
    el("code", "", el("b", "", step.tool), "(", step.args, ")"),
    el("span", "talk-step-end", sign, took ? ` ${took}` : ""),
  );
  const result = step.result ?? step.text;
  return el("div", "talk-step", head, result ? el("div", "talk-step-result", result) : null);
}
