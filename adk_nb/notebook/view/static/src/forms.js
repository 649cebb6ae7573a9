// Forms on cards: one control per parameter of a JSON schema.

import { el, newId, setAttribute } from "./elements.js";
import { defaultOf, isObject, jsonFrom, numberFrom, plainSchema, typeOf } from "./schemas.js";
import { inAscii, same, shown, withEscapes } from "./words.js";

/** @import { Field, Result, Schema } from "./types" */

const MAX_DEPTH = 3; // Deeper objects are edited as JSON.

/**
 * @typedef {object} Control
 * @property {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} node
 * @property {() => Result} read
 */

/**
 * @param {string} type
 * @param {Schema} schema
 * @param {any} value
 * @param {boolean} given
 * @returns {Control}
 */
function control(type, schema, value, given) {
  if (type === "enum") return choice(schema, given ? value : schema.default);
  if (type === "boolean") return checkbox((given ? value : schema.default) === true);
  if (type === "json") return jsonText(value, given);
  const node = line(type, schema, value);
  const isEmpty = () => !(type === "string" ? node.value : node.value.trim());
  return {
    node,
    read() {
      if (isEmpty() && !given && !schema.nullable) return { skip: true };
      if (isEmpty() && schema.nullable) return type === "string" && !given ? { skip: true } : { value: null };
      return type === "string" ? { value: node.value } : numberFrom(node.value.trim(), type, schema);
    },
  };
}

/**
 * @param {Schema} schema
 * @param {unknown} value
 * @returns {Control}
 */
function choice({ enum: values = [] }, value) {
  const node = el("select", "input", ...values.map((each) => el("option", "", withEscapes(String(each)))));
  node.selectedIndex = values.findIndex((each) => same(each, value));
  return { node, read: () => (node.selectedIndex < 0 ? { skip: true } : { value: values[node.selectedIndex] }) };
}

/**
 * @param {boolean} checked
 * @returns {Control}
 */
function checkbox(checked) {
  const node = el("input", "check");
  node.type = "checkbox";
  node.checked = checked;
  return { node, read: () => ({ value: node.checked }) };
}

/**
 * @param {unknown} value
 * @param {boolean} given
 * @returns {Control}
 */
function jsonText(value, given) {
  const node = el("textarea", "input");
  node.value = given ? withEscapes(JSON.stringify(value, null, 2)) : "";
  node.rows = Math.min(8, node.value.split("\n").length + 1);
  return { node, read: () => (!given && !node.value.trim() ? { skip: true } : jsonFrom(node.value)) };
}

/**
 * @param {string} type
 * @param {Schema} schema
 * @param {any} value
 */
function line(type, schema, value) {
  const long = type === "string" && typeof value === "string" && (value.includes("\n") || value.length > 60);
  const node = long ? el("textarea", "input") : el("input", "input");
  const isSecret = schema.format === "password";
  if (node instanceof HTMLInputElement)
    Object.assign(node, { type: isSecret ? "password" : "text", spellcheck: false });
  node.autocomplete = isSecret ? "new-password" : "off"; // browsers ignore "off" for passwords
  if (type !== "string") node.inputMode = type === "integer" ? "numeric" : "decimal";
  node.value = value === null || value === undefined ? "" : String(value);
  if (node instanceof HTMLTextAreaElement) node.rows = Math.min(16, Math.max(2, node.value.split("\n").length + 1));
  return node;
}

/** @param {Control["node"]} node */
const stateOf = (node) => (node instanceof HTMLInputElement && node.type === "checkbox" ? node.checked : node.value);

/**
 * @param {string} name
 * @param {Schema} described
 * @param {Record<string, unknown>} args
 * @param {Schema} root
 * @param {{depth?: number, within?: string, needed?: boolean}} [place] `needed`: true if a value is required; undefined
 *   if the schema does not have the field.
 * @returns {Field}
 */
export function field(name, described, args, root, { depth = 0, within = "", needed } = {}) {
  const schema = plainSchema(described, root);
  const object = args[name] ?? {};
  if (schema.properties && depth < MAX_DEPTH && isObject(object))
    return group(name, schema, object, root, depth, within);
  const given = Object.hasOwn(args, name);
  const type = typeOf(schema, args[name]);
  const { node, read } = control(type, schema, args[name], given);
  const before = stateOf(node); // an untouched value is not sent
  node.id = newId();
  const isUnknown = depth === 0 && !knows(root, name);
  const title = root["x-titles"] ? schema.title : null; // replaces name and type
  const kind = title ? "" : ` ${kindOf(schema, type, given, needed, isUnknown)}`;
  const label = el("label", "field-name", title ?? (isUnknown ? inAscii(name) : withEscapes(name)));
  label.append(el("span", "dim", kind));
  label.htmlFor = node.id;
  const problem = el("div", "problem");
  problem.id = `${node.id}-problem`;
  setAttribute(problem, "role", "alert");
  setAttribute(node, "aria-describedby", problem.id);
  if (needed && type !== "boolean") setAttribute(node, "aria-required", "true");
  const check = () => {
    const result = stateOf(node) === before ? { skip: true } : read();
    problem.textContent = result.error ? withEscapes(`${within}${name}: ${result.error}`) : "";
    setAttribute(node, "aria-invalid", String(Boolean(result.error)));
    return result.error ? { ...result, node } : result;
  };
  return { name, title, box: el("div", "field", label, node, description(schema), problem), node, check };
}

/**
 * @param {Schema} root
 * @param {string} name
 */
const knows = ({ properties, additionalProperties }, name) =>
  !properties || Boolean(additionalProperties) || Object.hasOwn(properties, name);

/** @param {Schema} schema */
const description = (schema) => (schema.description ? el("div", "dim", withEscapes(schema.description)) : null);

/**
 * `integer, or empty, default 3`.
 *
 * @param {Schema} schema
 * @param {string} type
 * @param {boolean} given
 * @param {boolean | undefined} needed
 * @param {boolean} isUnknown
 */
function kindOf(schema, type, given, needed, isUnknown) {
  const word = { json: "JSON", enum: "one of" }[type] ?? type;
  const kinds = [isUnknown ? "unknown" : "", word, schema.nullable && needed !== false ? "or empty" : ""];
  if (!given && defaultOf(schema) !== undefined) kinds.push(`default ${shown(schema.default)}`);
  else if (needed === false) kinds.push("optional");
  return kinds.filter(Boolean).join(", ");
}

/**
 * @param {Schema} schema
 * @param {Record<string, unknown>} args
 * @param {Schema} root
 * @param {number} [depth]
 * @param {string} [within]
 */
export function fieldsOf(schema, args, root, depth = 0, within = "") {
  const known = schema.properties ?? {};
  const names = [...new Set([...Object.keys(known), ...Object.keys(args)])];
  const needed = (/** @type {string} */ name) =>
    Object.hasOwn(known, name) ? (schema.required ?? []).includes(name) : undefined;
  return names.map((name) => field(name, known[name] ?? {}, args, root, { depth, within, needed: needed(name) }));
}

/**
 * A field for each property of an object.
 *
 * @param {string} name
 * @param {Schema} schema
 * @param {Record<string, unknown>} before
 * @param {Schema} root
 * @param {number} depth
 * @param {string} within
 * @returns {Field}
 */
function group(name, schema, before, root, depth, within) {
  const fields = fieldsOf(schema, before, root, depth + 1, `${within}${name}.`);
  const box = el("fieldset", "group", el("legend", "field-name", withEscapes(name)), description(schema));
  box.append(...fields.map((each) => each.box));
  const check = () => {
    const results = fields.map((each) => ({ part: each.name, ...each.check() }));
    const wrong = results.find(({ error }) => error);
    if (wrong) return wrong;
    const changed = results.filter(({ skip }) => !skip).map(({ part, value }) => [part, value]);
    return changed.length ? { value: { ...before, ...Object.fromEntries(changed) } } : { skip: true };
  };
  return { name, box, node: fields[0]?.node, check };
}

/**
 * The differences between two values, as `address.city "Oslo" → "Rome"`.
 *
 * @param {string} name
 * @param {unknown} before
 * @param {unknown} now
 * @returns {HTMLElement[]}
 */
export function differences(name, before, now) {
  if (same(before, now)) return [];
  if (!isObject(before) || !isObject(now)) {
    return [el("div", "", el("b", "", withEscapes(name)), ` ${shown(before)} → ${shown(now)}`)];
  }
  const parts = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  return parts.flatMap((part) => differences(`${name}.${part}`, before[part], now[part]));
}

/**
 * Call `leave` on Escape, before the view handles it.
 *
 * @param {HTMLElement} form
 * @param {() => void} leave
 */
export function onEscape(form, leave) {
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation();
    leave();
  });
}
