// The requests to models, exactly as sent, with inserted values marked, and the responses.

import { copyButton, el, put, setLabel } from "../elements.js";
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
    setLabel(this.which, "Model call");
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
    return [
      el("div", "dim facts", facts),
      call.error ? el("div", "problem", `✗ ${call.error}`) : null,
      el("div", "parts", ...partsOf(call).map(folded)),
      sameLine(call),
    ];
  }
}

/**
 * @typedef {object} Part A part of a request or a response.
 * @property {string} title
 * @property {string} size
 * @property {() => string} text To copy.
 * @property {() => Child[]} content Drawn when it is opened.
 * @property {boolean} [open]
 */

/**
 * The parts with content, without those that the call repeats of an earlier one.
 *
 * @param {any} call
 * @returns {Part[]}
 */
function partsOf(call) {
  const { same } = call;
  const system = textOf(call.system);
  const values = new Map(call.system.filter((/** @type {SentText} */ { source }) => source).map(pairOf));
  const history = call.history.slice(same.history);
  const messages = count(call.messages, "message");
  const settings = Object.keys(call.settings ?? {}).length;
  const raw = call.raw ? json(call.raw) : "";
  /** @type {(Part | null)[]} */
  const parts = [
    system && {
      title: "System instruction",
      size: count(system.length, "character"),
      text: () => system,
      content: () => [el("div", "sent", ...call.system.flatMap(sentWords))],
      open: system.length <= SHORT && !same.call,
    },
    values.size && {
      title: "Inserted values",
      size: count(values.size, "value"),
      text: () => [...values].map(([source, text]) => `${source}\t${text}`).join("\n"),
      content: () =>
        [...values].map(([source, text]) => el("div", "sent", `${source} → `, ...sentWords({ text, source }))),
    },
    call.tools.length && {
      title: "Tools",
      size: String(call.tools.length),
      text: () => json(call.tools),
      content: () => call.tools.map(toolSent),
    },
    settings && {
      title: "Settings",
      size: String(settings),
      text: () => json(call.settings),
      content: () => [jsonTree(call.settings)],
    },
    history.length && {
      title: "History",
      size: same.messages ? `${call.messages - same.messages} new of ${messages}` : messages,
      text: () => conversation(history),
      content: () => partRows(history),
    },
    call.answer.length && {
      title: "Answer",
      size: sizeOf(call.answer),
      text: () => conversation(call.answer),
      content: () => partRows(call.answer),
      open: true,
    },
    raw && {
      title: "Raw response",
      size: count(raw.length, "character"),
      text: () => raw,
      content: () => [jsonTree(call.raw)],
    },
  ].map((part) => part || null);
  return parts.flatMap((part) => (part && !same.parts.includes(part.title.toLowerCase()) ? [part] : []));
}

/** @param {any} call */
function sameLine({ same, system, tools, settings }) {
  const filled = {
    "system instruction": system.length,
    tools: tools.length,
    settings: Object.keys(settings ?? {}).length,
  };
  const names = Object.entries(filled).flatMap(([name, size]) => (size && same.parts.includes(name) ? [name] : []));
  if (same.messages) names.push(`the first ${count(same.messages, "message")}`);
  return names.length ? el("div", "dim same", `as in model call ${same.call}: ${names.join(", ")}`) : null;
}

const SHORT = 1_500; // characters of an instruction that is open at first

/** @param {unknown} value */
const json = (value) => JSON.stringify(value, null, 2);

/** @param {SentText[]} pieces */
const textOf = (pieces) => pieces.map(({ text }) => text).join("");

/**
 * @param {SentText} piece
 * @returns {[string, string]}
 */
const pairOf = ({ text, source }) => [source, text];

/** @param {PromptPart[]} parts */
const conversation = (parts) => parts.map(({ role, text }) => `${role}: ${textOf(text)}`).join("\n");

/** @param {PromptPart[]} answer */
function sizeOf(answer) {
  const calls = answer.filter(({ kind }) => kind === "call").length;
  const letters = answer.flatMap(({ kind, text }) => (kind === "text" ? textOf(text) : "")).join("").length;
  return [calls ? count(calls, "call") : "", letters ? count(letters, "character") : ""].filter(Boolean).join(", ");
}

/** @param {Part} part */
function folded({ title, size, text, content, open = false }) {
  const summary = el("summary", "", el("b", "part-name", title), " ", el("span", "dim", size));
  const node = el("details", "part", summary);
  const fill = () => {
    if (node.childElementCount > 1) return;
    const copy = copyButton("Copy", text);
    copy.classList.add("adknb-part-copy");
    setLabel(copy, `Copy ${title.toLowerCase()}`);
    node.append(copy, ...content().map((child) => child ?? ""));
  };
  node.addEventListener("toggle", () => node.open && fill());
  if (open) fill();
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
