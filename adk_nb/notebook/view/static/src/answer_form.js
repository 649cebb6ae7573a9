// A form for a value of a JSON schema: a button for each choice, or fields and Send; also to edit an existing value.

import { button, buttonRow, el, newId, put, setAttribute } from "./elements.js";
import { differences, field, fieldsOf, onEscape } from "./forms.js";
import { choicesOf, defaultOf, plainSchema, typeOf } from "./schemas.js";
import { same, withEscapes } from "./words.js";

/** @import { Choice, Field, Result, Schema } from "./types" */

const MOST_BUTTONS = 12;

/**
 * @typedef {object} Options
 * @property {string} [label] Label of the button that sends.
 * @property {string} [look] Class of that button.
 * @property {string} [changed] Its label after an edit.
 * @property {HTMLElement[]} [more] Buttons beside it.
 * @property {(() => void) | null} [leave] Called on Escape.
 * @property {Record<string, unknown> | null} [values] The object to edit: only changed fields are sent, null for none.
 */

export class AnswerForm {
  /**
   * @param {Schema | null} schema Null: for text.
   * @param {(value: any) => void} send
   * @param {Options} [options]
   */
  constructor(
    schema,
    send,
    { label = "Send", look = "go", changed = label, more = [], leave = null, values = null } = {},
  ) {
    this.send = send;
    this.label = label;
    this.changed = changed;
    this.values = values;
    this.go = button(label, look, () => this.submit());
    this.root = schema ?? {};
    this.schema = plainSchema(this.root, this.root);
    this.twin = el("span", "twin");
    this.problem = el("div", "problem");
    setAttribute(this.problem, "role", "alert");
    this.difference = el("div", "difference");
    setAttribute(this.difference, "aria-live", "polite");
    /** @type {Field[]} */
    this.fields = [];
    this.isObject = Boolean(values || this.schema.properties);
    const choices = choicesOf(this.schema, this.root);
    const asButtons = !values && choices && choices.length > 0 && choices.length <= MOST_BUTTONS ? choices : null;
    /** @type {HTMLElement | undefined} The first field or button. */
    this.first = undefined;
    this.node = asButtons ? this.#choose(asButtons) : this.#fill(choices, more, leave);
  }

  /** @param {Choice[]} choices */
  #choose(choices) {
    const buttons = choices.map(({ label, value }) => button(label, "choice", () => this.send(value)));
    this.first = buttons[0];
    return buttonRow(...buttons, this.twin);
  }

  /**
   * @param {Choice[] | null} choices
   * @param {HTMLElement[]} more
   * @param {(() => void) | null} leave
   */
  #fill(choices, more, leave) {
    this.fields = this.isObject ? fieldsOf(this.schema, this.values ?? {}, this.root) : [this.#field(choices)];
    this.first = this.fields[0]?.node;
    const boxes = this.fields.map((each) => each.box);
    const node = el(
      "div",
      `form answer${this.values ? " edits" : ""}`,
      ...boxes,
      this.values ? this.difference : null,
      this.problem,
    );
    node.append(buttonRow(this.go, ...more, this.twin));
    node.addEventListener("input", () => this.check());
    if (leave) onEscape(node, leave);
    node.addEventListener("keydown", (event) => this.#onEnter(event));
    return node;
  }

  /** @param {KeyboardEvent} event */
  #onEnter(event) {
    if (this.values || event.key !== "Enter" || event.isComposing || event.shiftKey) return; // an approval takes a click
    if (!(event.target instanceof Element) || !event.target.matches("input, .adknb-say")) return;
    event.preventDefault();
    this.submit();
  }

  /** @param {Choice[] | null} choices */
  #field(choices) {
    const type = typeOf(this.schema);
    if (choices)
      return field("Your answer", { ...this.schema, enum: choices.map((each) => each.value) }, {}, this.root);
    const isText = type === "string" || (type === "json" && !["object", "array"].includes(String(this.schema.type)));
    return isText ? this.#text() : field(this.schema.title ?? "Your answer", this.schema, {}, this.root);
  }

  /**
   * A text field, whose value Python parses by the schema.
   *
   * @returns {Field}
   */
  #text() {
    const node = el("textarea", "input say");
    node.rows = 1;
    node.id = newId();
    node.value = typeof this.schema.default === "string" ? this.schema.default : "";
    node.addEventListener("input", () => {
      node.rows = Math.min(8, node.value.split("\n").length);
    });
    const label = el("label", "field-name", this.schema.title ?? "Your answer");
    label.htmlFor = node.id;
    const empty = this.schema.nullable ? { value: null } : { skip: true };
    const check = () => (node.value.trim() ? { value: node.value } : empty);
    return { name: "", node, box: el("div", "field", label, node), check };
  }

  /** Show the problems and the changes of the current input. */
  check() {
    this.problem.textContent = "";
    const results = this.#results((each) => each.check());
    this.go.disabled = results.some(([, { error }]) => error !== undefined);
    const { values } = this;
    if (!values) return;
    const known = this.schema.properties ?? {};
    const before = (/** @type {string} */ name) =>
      Object.hasOwn(values, name) ? values[name] : defaultOf(known[name]);
    const edits = Object.entries(this.#edits(results) ?? {});
    const lines = edits.flatMap(([name, value]) => differences(name, before(name), value));
    put(this.difference, ...lines);
    this.go.textContent = lines.length ? this.changed : this.label;
  }

  /**
   * @param {(each: Field) => Result} check
   * @returns {[Field, Result][]}
   */
  #results(check) {
    return this.fields.map((each) => [each, check(each)]);
  }

  /** @param {[Field, Result][]} results */
  #edits(results) {
    const edited = results.filter(
      ([{ name }, { skip, error, value }]) => !skip && !error && !same(value, this.values?.[name]),
    );
    return edited.length ? this.#object(edited) : null;
  }

  submit() {
    const results = this.#results((each) => this.#result(each));
    const [wrong, result] = results.find(([, { error }]) => error) ?? [];
    const [missing] = results.find(([each, { skip }]) => skip && this.#isNeeded(each)) ?? [];
    const label = missing?.name ? `${missing.title ?? missing.name}: nothing was typed` : "nothing was typed";
    this.problem.textContent = missing && !wrong ? withEscapes(label) : "";
    if (wrong) (result?.node ?? wrong.node)?.focus();
    else if (missing) missing.node?.focus();
    else if (this.values) this.send(this.#edits(results));
    else this.send(this.isObject ? this.#object(results) : results[0][1].value);
  }

  /** @param {[Field, Result][]} results */
  #object(results) {
    return Object.fromEntries(results.filter(([, { skip }]) => !skip).map(([{ name }, { value }]) => [name, value]));
  }

  /**
   * The value of a field; an untouched one has its default or previous value, and an untouched box is false.
   *
   * @param {Field} each
   * @returns {Result}
   */
  #result(each) {
    const result = each.check();
    if (typeof result.value === "string" && !result.value.trim() && this.#isNeeded(each)) return { skip: true };
    if (!result.skip || (this.values && !this.#isNeeded(each))) return result;
    const known = this.isObject ? plainSchema(this.schema.properties?.[each.name] ?? {}, this.root) : this.schema;
    if (known.default !== undefined) return { value: known.default };
    const isBox = each.node instanceof HTMLInputElement && each.node.type === "checkbox";
    return isBox ? { value: each.node instanceof HTMLInputElement && each.node.checked } : result;
  }

  /** @param {Field} each */
  #isNeeded({ name }) {
    if (!this.isObject) return true;
    if (this.values && Object.hasOwn(this.values, name)) return false;
    const isGroup = plainSchema(this.schema.properties?.[name] ?? {}, this.root).properties; // Python checks its fields
    return !isGroup && (this.schema.required ?? []).includes(name);
  }
}
