// The state of the session: changes since the start or by one event, with fields to edit keys.

import { button, el, put, setAttribute, setLabel } from "../elements.js";
import { registerPanel } from "../panels.js";
import { rowLine } from "../row_text.js";
import { MARKS, valueText } from "../words.js";

/** @import { Op, StateEntry } from "../types" */
/** @import { View } from "../view.js" */

/** @type {Record<string, string>} */
const SCOPES = { user: "of this user", app: "of all", temp: "of this turn" };

class StateTable {
  /**
   * @param {HTMLElement} root
   * @param {View} view
   */
  constructor(root, view) {
    this.store = view.store;
    /** @type {{key: string, json: string}[] | undefined} Each key with its whole value. */
    this.whole = undefined;
    /** @type {string | null} The key that is edited; "" for a new one. */
    this.editing = null;
    /** @type {string | null} */
    this.sent = null;
    /** @type {string | null} */
    this.drawn = null;
    this.choices = "";
    this.against = el("select", "input");
    setLabel(this.against, "Compare with");
    this.against.addEventListener("change", () => this.paint(this.whole));
    this.against.addEventListener("keydown", (event) => event.stopPropagation());
    this.add = button("Add a key", "small", () => this.edit(""));
    this.problem = el("div", "problem");
    setAttribute(this.problem, "role", "alert");
    this.rows = el("div", "keys");
    this.head = el("div", "panel-head", this.against, this.add, this.problem);
    root.append(this.head, this.rows);
  }

  get mayEdit() {
    return this.store.offers.includes("state") && !this.store.gone;
  }

  closed() {
    this.edit(null);
  }

  /** @param {Op} op */
  touch(op) {
    if (op.op !== "panel" || op.name !== "refused" || op.id !== this.sent) return;
    this.problem.textContent = op.data;
    if (!op.data) this.edit(null);
  }

  /** @param {string | null} key */
  edit(key) {
    this.editing = key;
    this.sent = null;
    this.problem.textContent = "";
    this.drawn = null;
    this.head.append(this.problem); // back from the form, which is removed
    if (key !== null) this.paint(this.whole);
  }

  /** @param {any} whole */
  paint(whole) {
    this.whole = whole;
    const changed = [...this.store.rows.values()].filter((row) => row.changes?.length).slice(-100);
    const choices = [
      ["", this.store.box ? "changes since it began" : "changes this turn"],
      ...changed.map((row) => [row.id, `changes by: ${rowLine(row).slice(0, 70)}`]),
    ];
    const labels = JSON.stringify(choices);
    if (labels !== this.choices) {
      const chosen = this.against.value;
      this.choices = labels;
      put(this.against, ...choices.map(([id, label]) => Object.assign(el("option", "", label), { value: id })));
      this.against.value = choices.some(([id]) => id === chosen) ? chosen : "";
    }
    this.add.hidden = !this.mayEdit;
    const event = this.store.rows.get(this.against.value);
    const entries = event
      ? (event.changes ?? []).map((change) => ({ ...change, value: change.new }))
      : this.store.state;
    const drawn = JSON.stringify([entries, this.editing, this.mayEdit, whole]);
    if (drawn === this.drawn || (this.editing !== null && this.drawn)) return; // keep the text that is being typed
    this.drawn = drawn;
    const fresh = this.editing === "" ? this.form("", "") : null;
    put(this.rows, fresh, ...entries.map((entry) => this.row(entry, !event)));
    const input = this.rows.querySelector("input, textarea");
    if (input instanceof HTMLElement) input.focus();
  }

  /**
   * @param {StateEntry} entry
   * @param {boolean} now True: a key of the current state. False: a change by an event.
   */
  row(entry, now) {
    const { key, kind } = entry;
    const removed = kind === "-";
    const whole = now && !removed ? this.whole?.find((each) => each.key === key)?.json : undefined;
    if (key === this.editing && now) return this.form(key, whole ?? "");
    const [scope, name] = scoped(key);
    const chip = el("span", "chip", scope);
    chip.title = SCOPES[scope] ?? "of this session";
    chip.dataset.scope = scope;
    const mark = el("span", "mark", kind || " ", MARKS[kind] ? el("span", "hidden", MARKS[kind]) : null);
    const node = el("div", "key-row", mark, chip, el("div", "key-name", name), values(entry, whole));
    node.dataset.mark = kind;
    if (now && !removed && scope !== "temp" && this.mayEdit) node.append(this.buttons(key));
    return node;
  }

  /** @param {string} key */
  buttons(key) {
    const change = button("Edit", "small", () => this.edit(key));
    setLabel(change, `Edit ${key}`);
    const remove = button("Delete", "small", () => this.send({ kind: "state", key, text: null }));
    setLabel(remove, `Delete ${key}`);
    return el("div", "key-buttons", change, remove);
  }

  /**
   * @param {string} key
   * @param {string} text
   */
  form(key, text) {
    const name = key ? null : this.input("Key", "name, user:name or app:name", "");
    const value = this.input("Value", "JSON, or else text", text);
    const save = () => this.send({ kind: "state", key: key || (name?.value.trim() ?? ""), text: value.value });
    const back = () => {
      this.edit(null);
      this.paint(this.whole);
    };
    const node = el(
      "div",
      "key-form",
      key ? el("b", "", key) : name,
      value,
      button("Save", "go small", save),
      button("Cancel", "small", back),
      this.problem,
    );
    node.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") back();
      else if (
        event.key === "Enter" &&
        !event.shiftKey &&
        !event.isComposing &&
        !(event.target instanceof HTMLButtonElement)
      ) {
        event.preventDefault();
        save();
      }
    });
    return node;
  }

  /**
   * @param {string} label
   * @param {string} hint
   * @param {string} text
   */
  input(label, hint, text) {
    const node = el(text.includes("\n") ? "textarea" : "input", "input");
    node.value = text;
    node.placeholder = hint;
    setLabel(node, `${label} (${hint})`);
    return node;
  }

  /** @param {{kind: string, key: string, text: string | null}} message */
  send(message) {
    this.sent = message.key;
    this.problem.textContent = message.key ? "" : "the key has no name";
    if (message.key) this.store.send(message);
  }
}

/**
 * @param {StateEntry} entry
 * @param {string | undefined} whole Its full value, if Python has sent it.
 */
function values({ kind, old, value }, whole) {
  const isGone = kind === "-";
  const was = kind === "~" || isGone ? el("div", "was", el("span", "hidden", "was "), valueText(old ?? "")) : null;
  return el("div", "values", was, isGone ? null : el("div", "value", valueText(whole ?? value ?? "")));
}

/**
 * Scope and name of a key: `user` and `city` of `user:city`.
 *
 * @param {string} key
 */
function scoped(key) {
  const at = key.indexOf(":");
  return at < 0 ? ["session", key] : [key.slice(0, at), key.slice(at + 1)];
}

registerPanel({
  name: "state",
  title: "State",
  look: "panel state-table",
  refresh: ["state"],
  exists: (store) => store.state.length > 0,
  mount: (root, view) => new StateTable(root, view),
});
