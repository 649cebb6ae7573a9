// A form that asks for one value of a JSON schema, or lets one be edited: a button for each choice, or fields and Send.

import { button, el, newId, put } from "./elements.js";
import { defaultOf, differences, field, fieldsOf, onEscape, plainSchema, typeOf } from "./forms.js";
import { same, withEscapes } from "./words.js";

const MOST_BUTTONS = 12;

// The values to choose from, each with its label; null for a schema of anything else.
function choicesOf(described, root) {
  const schema = plainSchema(described, root);
  const nothing = schema.nullable ? [{ label: "Nothing", value: null }] : [];
  if (Object.hasOwn(schema, "const"))
    return [{ label: schema.title ?? choiceLabel(schema.const), value: schema.const }];
  if (Array.isArray(schema.enum))
    return [...schema.enum.map((value) => ({ label: choiceLabel(value), value })), ...nothing];
  if (schema.type === "boolean") return [{ label: "Yes", value: true }, { label: "No", value: false }, ...nothing];
  if (schema.type === "null") return [{ label: "Nothing", value: null }];
  const each = (schema.oneOf ?? schema.anyOf ?? []).map((one) => choicesOf(one, root));
  return each.length && each.every(Boolean) ? each.flat() : null;
}

const choiceLabel = (value) =>
  value === null ? "Nothing" : withEscapes(typeof value === "string" ? value : JSON.stringify(value));

export class AnswerForm {
  // `schema` is a JSON schema, or nothing for text; `send` gets the value. `more`: buttons beside that of `label`;
  // `leave`: what Escape does. `values`: the object that is edited: `send` gets what was changed of it, null for nothing.
  constructor(
    schema,
    send,
    { label = "Send", look = "go", changed = label, more = [], leave = null, values = null } = {},
  ) {
    Object.assign(this, { send, label, changed, more, leave, values });
    this.go = button(label, look, () => this.submit());
    this.schema = plainSchema(schema ?? {}, schema ?? {});
    this.root = schema ?? {};
    this.twin = el("span", "twin");
    const choices = choicesOf(this.schema, this.root);
    if (!values && choices?.length && choices.length <= MOST_BUTTONS) this.choose(choices);
    else this.fill(choices);
  }

  choose(choices) {
    const buttons = choices.map(({ label, value }) => button(label, "choice", () => this.send(value)));
    this.first = buttons[0];
    this.node = el("div", "buttons", ...buttons, this.twin);
  }

  fill(choices) {
    this.isObject = Boolean(this.values || this.schema.properties);
    this.fields = this.isObject ? fieldsOf(this.schema, this.values ?? {}, this.root) : [this.field(choices)];
    this.first = this.fields[0]?.node;
    this.problem = el("div", "problem");
    this.problem.setAttribute("role", "alert");
    this.difference = el("div", "difference");
    this.difference.setAttribute("aria-live", "polite");
    const boxes = this.fields.map((each) => each.box);
    this.node = el("div", "form answer", ...boxes, this.values ? this.difference : null, this.problem);
    this.node.append(el("div", "buttons", this.go, ...this.more, this.twin));
    this.node.addEventListener("input", () => this.check());
    if (this.leave) onEscape(this.node, this.leave);
    this.node.addEventListener("keydown", (event) => {
      if (this.values) return; // a yes takes a click
      if (event.key !== "Enter" || event.isComposing || event.shiftKey || !event.target.matches("input, .adknb-say"))
        return;
      event.preventDefault();
      this.submit();
    });
  }

  field(choices) {
    const type = typeOf(this.schema);
    if (choices)
      return field("Your answer", { ...this.schema, enum: choices.map((each) => each.value) }, {}, this.root);
    const isText = type === "string" || (type === "json" && !["object", "array"].includes(this.schema.type));
    return isText ? this.text() : field(this.schema.title ?? "Your answer", this.schema, {}, this.root);
  }

  // Words, which Python reads as whatever the schema takes.
  text() {
    const node = el("textarea", "input say");
    node.rows = 1;
    node.id = newId();
    node.value = typeof this.schema.default === "string" ? this.schema.default : "";
    node.addEventListener("input", () => (node.rows = Math.min(8, node.value.split("\n").length)));
    const label = el("label", "field-name", this.schema.title ?? "Your answer");
    label.htmlFor = node.id;
    const empty = this.schema.nullable ? { value: null } : { skip: true };
    return {
      name: "",
      node,
      box: el("div", "field", label, node),
      check: () => (node.value.trim() ? { value: node.value } : empty),
    };
  }

  // What was typed so far: what is wrong with it, and what it changes.
  check() {
    this.problem.textContent = "";
    const results = this.fields.map((each) => [each, each.check()]);
    this.go.disabled = results.some(([, result]) => result.error);
    if (!this.values) return;
    const known = this.schema.properties ?? {};
    const before = (name) => (Object.hasOwn(this.values, name) ? this.values[name] : defaultOf(known[name]));
    const lines = Object.entries(this.edits(results) ?? {}).flatMap(([name, value]) =>
      differences(name, before(name), value),
    );
    put(this.difference, ...lines);
    this.go.textContent = lines.length ? this.changed : this.label;
  }

  edits(results) {
    const edited = results.filter(
      ([each, { skip, error, value }]) => !skip && !error && !same(value, this.values[each.name]),
    );
    return edited.length ? this.object(edited) : null;
  }

  submit() {
    const results = this.fields.map((each) => [each, this.result(each)]);
    const [wrong, why] = results.find(([, result]) => result.error) ?? [];
    const missing = this.fields.find((each, place) => results[place][1].skip && this.isNeeded(each));
    const label = missing?.name ? `${missing.title ?? missing.name}: nothing was typed` : "nothing was typed";
    this.problem.textContent = missing && !wrong ? withEscapes(label) : "";
    if (wrong) (why.node ?? wrong.node).focus();
    else if (missing) missing.node?.focus();
    else if (this.values) this.send(this.edits(results));
    else this.send(this.isObject ? this.object(results) : results[0][1].value);
  }

  object(results) {
    return Object.fromEntries(
      results.filter(([, result]) => !result.skip).map(([each, result]) => [each.name, result.value]),
    );
  }

  // What was not touched is its default, or as it was, and a box that was not ticked is a no.
  result(each) {
    const result = each.check();
    if (typeof result.value === "string" && !result.value.trim() && this.isNeeded(each)) return { skip: true };
    if (!result.skip || (this.values && !this.isNeeded(each))) return result;
    const schema = this.isObject ? plainSchema(this.schema.properties[each.name], this.root) : this.schema;
    if (schema.default !== undefined) return { value: schema.default };
    return each.node?.type === "checkbox" ? { value: each.node.checked } : result;
  }

  isNeeded(each) {
    if (!this.isObject) return true;
    if (this.values && Object.hasOwn(this.values, each.name)) return false;
    const isGroup = plainSchema(this.schema.properties?.[each.name] ?? {}, this.root).properties; // Python says what it lacks
    return !isGroup && (this.schema.required ?? []).includes(each.name);
  }
}
