// The requests to models, exactly as sent, with inserted values marked, and the responses.

import { copyButton, el, put } from "../elements.js";
import { jsonTree } from "../json_tree.js";
import { registerPanel } from "../panels.js";
import { count, duration } from "../words.js";

/** @import { Child, Op, PromptPart, SentText } from "../types" */
/** @import { View } from "../view.js" */

class Prompt {
  /**
   * @param {HTMLElement} root
   * @param {View} view
   */
  constructor(root, view) {
    this.store = view.store;
    /** @type {any[]} Headings of the model calls. */
    this.calls = [];
    /** @type {number | null} Null: the newest. */
    this.chosen = null;
    /** @type {string | null} */
    this.drawn = null;
    this.labels = "";
    this.which = el("select", "input");
    this.which.setAttribute("aria-label", "Model call");
    this.which.addEventListener("change", () => {
      this.chosen = Number(this.which.value);
      this.want();
      this.paint(this.calls);
    });
    this.which.addEventListener("keydown", (event) => event.stopPropagation());
    this.body = el("div", "prompt-body");
    root.append(el("div", "prompt-head", this.which), this.body);
  }

  /** @param {Op} op */
  touch(op) {
    if (op.op !== "panel" || op.name !== "prompts") return;
    this.calls = op.data;
    this.want();
  }

  get at() {
    const last = this.calls.length - 1;
    return this.chosen === null ? last : Math.min(this.chosen, last);
  }

  /** Request the selected call only, since a history may be long. */
  want() {
    if (this.at >= 0) this.store.send({ kind: "need", what: "prompt", id: String(this.at) });
  }

  /** @param {any[]} [calls] */
  paint(calls = []) {
    this.calls = calls;
    const labels = calls.map(({ agent, model, ms, tokens }, at) =>
      [`${at + 1} of ${calls.length}`, agent, model, tokens ? count(tokens, "token") : "", duration(ms)]
        .filter(Boolean)
        .join(" · "),
    );
    if (this.labels !== labels.join("\n")) {
      this.labels = labels.join("\n");
      put(this.which, ...labels.map((label, at) => Object.assign(el("option", "", label), { value: String(at) })));
    }
    this.which.hidden = !calls.length;
    if (calls.length) this.which.value = String(this.at);
    const call = this.store.panels.get(`prompt/${this.at}`);
    const drawn = JSON.stringify([calls.length, call]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    if (!calls.length) put(this.body, el("div", "dim", "No model has been asked yet."));
    else if (!call) put(this.body, el("div", "dim", "…"));
    else put(this.body, ...this.call(call));
  }

  /** @param {any} call */
  call(call) {
    const tokens = Object.entries(call.tokens)
      .map(([name, number]) => `${Number(number).toLocaleString("en")} ${name}`)
      .join(", ");
    const took = [duration(call.ms), call.first_ms === null ? "" : `first piece after ${duration(call.first_ms)}`];
    const facts = [call.model, tokens && `tokens: ${tokens}`, ...took].filter(Boolean).join(" · ");
    const system = call.system.map((/** @type {SentText} */ part) => part.text).join("");
    return [
      el("div", "dim facts", facts),
      call.error ? el("div", "problem", `✗ ${call.error}`) : null,
      folded("System instruction", "", system, true, el("div", "sent", ...call.system.flatMap(sentWords))),
      folded("Tools", String(call.tools.length), call.tools, false, ...call.tools.map(toolSent)),
      folded("History", count(call.messages, "message"), call.history, true, ...partRows(call.history)),
      folded("Settings", "", call.settings && Object.keys(call.settings), false, jsonTree(call.settings)),
      folded("Answer", "", call.answer, true, ...partRows(call.answer)),
      folded(
        "Raw response",
        "",
        call.raw,
        false,
        call.raw
          ? el(
              "div",
              "",
              copyButton("Copy", () => JSON.stringify(call.raw, null, 2)),
              jsonTree(call.raw),
            )
          : null,
      ),
    ];
  }
}

/**
 * @param {string} title
 * @param {string} note
 * @param {any} content
 * @param {boolean} open
 * @param {...Child} children
 */
function folded(title, note, content, open, ...children) {
  if (!content || (!content.length && typeof content !== "object") || (Array.isArray(content) && !content.length))
    return null;
  const node = el(
    "details",
    "part",
    el("summary", "", el("b", "", title), note ? el("span", "dim", ` ${note}`) : null),
    ...children,
  );
  node.open = open;
  return node;
}

/**
 * @param {SentText} part
 * @returns {Child[]}
 */
function sentWords({ text, source }) {
  if (!source) return [text];
  const mark = el(
    "mark",
    "put",
    el("span", "hidden", `put in for ${source}: `),
    text || "(nothing)",
    el("span", "source", source),
  );
  mark.title = `put in for ${source}`;
  return [mark];
}

/** @param {{name: string, description: string, parameters: unknown}} tool */
function toolSent({ name, description, parameters }) {
  return el(
    "div",
    "tool-sent",
    el("div", "call", name),
    el("div", "dim", description),
    parameters ? jsonTree(parameters, "parameters", false) : null,
  );
}

/** @param {PromptPart[]} history */
function partRows(history) {
  return history.map(({ role, kind, text }) => {
    const node = el(
      "div",
      "said",
      el("span", "role", role),
      el("span", "dim", kind),
      el("div", "sent", ...text.flatMap(sentWords)),
    );
    node.dataset.kind = kind;
    return node;
  });
}

registerPanel({
  name: "prompt",
  title: "Prompt",
  asks: "prompts",
  refresh: ["patch", "status"],
  mount: (root, view) => new Prompt(root, view),
});
