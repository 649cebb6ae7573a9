// The whole state of the session: by scope, against the start or by one event, and to be changed in place.

import { button, el, put } from "../elements.js";
import { registerPanel } from "../panels.js";
import { rowLine } from "../row_text.js";
import { MARKS } from "../words.js";

const SCOPES = { user: "of this user", app: "of all", temp: "of this turn" };

class StateTable {
  constructor(root, view) {
    this.store = view.store;
    this.whole = undefined; // each key with its whole value, as Python has it
    this.editing = null; // the key that is being changed; "" for a new one
    this.sent = null;
    this.against = el("select", "input");
    this.against.setAttribute("aria-label", "Compare with");
    this.against.addEventListener("change", () => this.paint(this.whole));
    this.against.addEventListener("keydown", (event) => event.stopPropagation());
    this.add = button("Add a key", "small", () => this.edit(""));
    this.problem = el("div", "problem");
    this.problem.setAttribute("role", "alert");
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

  touch(op) {
    if (op.op !== "panel" || op.name !== "refused" || op.id !== this.sent) return;
    this.problem.textContent = op.data;
    if (!op.data) this.edit(null);
  }

  edit(key) {
    this.editing = key;
    this.sent = null;
    this.problem.textContent = "";
    this.drawn = null;
    this.head.append(this.problem); // the form takes it to itself
    if (key !== null) this.paint(this.whole);
  }

  paint(whole) {
    this.whole = whole;
    const changed = [...this.store.rows.values()].filter((row) => row.changes?.length).slice(-100);
    const choices = [
      ["", "changes since the start"],
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
      ? event.changes.map((change) => ({ key: change.key, kind: change.kind, old: change.old, value: change.new }))
      : this.store.state;
    const drawn = JSON.stringify([entries, this.editing, this.mayEdit, whole]);
    if (drawn === this.drawn || (this.editing !== null && this.drawn)) return; // what is being typed stays
    this.drawn = drawn;
    const fresh = this.editing === "" ? this.form("", "") : null;
    put(this.rows, fresh, ...entries.map((entry) => this.row(entry, !event)));
    this.rows.querySelector("input, textarea")?.focus();
  }

  row({ key, kind, old, value }, now) {
    const [scope, name] = key.includes(":") ? [key.split(":")[0], key.slice(key.indexOf(":") + 1)] : ["session", key];
    const chip = el("span", "chip", scope);
    chip.title = SCOPES[scope] ?? "of this session";
    chip.dataset.scope = scope;
    const mark = el("span", "mark", kind || " ");
    if (MARKS[kind]) mark.append(el("span", "hidden", MARKS[kind]));
    const whole = now && kind !== "-" ? this.whole?.find((each) => each.key === key) : null;
    const before = kind === "~" || kind === "-" ? el("div", "was", el("span", "hidden", "was "), old ?? "") : null;
    const shownValue = kind === "-" ? null : el("div", "value", whole?.json ?? value ?? "");
    const node = el("div", "key-row", mark, chip, el("div", "key-name", name), el("div", "values", before, shownValue));
    node.dataset.mark = kind || "";
    if (key === this.editing && now) return this.form(key, whole?.json ?? "");
    if (!now || kind === "-" || scope === "temp" || !this.mayEdit) return node;
    const change = button("Edit", "small", () => this.edit(key));
    change.setAttribute("aria-label", `Edit ${key}`);
    const remove = button("Delete", "small", () => this.say({ kind: "state", key, text: null }));
    remove.setAttribute("aria-label", `Delete ${key}`);
    node.append(el("div", "key-buttons", change, remove));
    return node;
  }

  form(key, text) {
    const name = key ? null : this.input("Key", "name, user:name or app:name", "");
    const value = this.input("Value", "JSON, or else text", text);
    const save = () => this.say({ kind: "state", key: key || name.value.trim(), text: value.value });
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
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.tagName !== "BUTTON") {
        event.preventDefault();
        save();
      }
    });
    return node;
  }

  input(label, hint, text) {
    const node = el(text.includes("\n") ? "textarea" : "input", "input");
    node.value = text;
    node.placeholder = hint;
    node.setAttribute("aria-label", `${label} (${hint})`);
    return node;
  }

  say(message) {
    this.sent = message.key;
    this.problem.textContent = message.key ? "" : "the key has no name";
    if (message.key) this.store.say(message);
  }
}

registerPanel({
  name: "state",
  title: "State",
  look: "panel state-table",
  refresh: ["state"],
  exists: (store) => store.state.length > 0,
  mount: (root, view) => new StateTable(root, view),
});
