// Forms on cards: one control per parameter of a JSON schema.

import { el, newId } from "./elements.js";
import { inAscii, same, shown, withEscapes } from "./words.js";

const DEEPEST = 3; // Objects within objects that have fields of their own; what lies deeper is edited as JSON.

// What a parameter has that is not given; none that a reader need be told of.
export const defaultOf = (schema) => (schema?.default === null ? undefined : schema?.default);

// What a parameter is: references followed, and `X or null` taken as X that may be left empty.
export function plainSchema(schema, root) {
  const named = /^#\/\$defs\/(.+)$/.exec(schema.$ref ?? "")?.[1];
  if (named && root.$defs?.[named])
    return { ...plainSchema(root.$defs[named], { $defs: {} }), ...schema, $ref: undefined };
  if (Array.isArray(schema.type) && schema.type.length === 2 && schema.type.includes("null")) {
    return { ...schema, type: schema.type.find((each) => each !== "null"), nullable: true };
  }
  const others = (schema.anyOf ?? []).filter((each) => each.type !== "null");
  if (others.length !== 1 || others.length === schema.anyOf.length) return schema;
  const { anyOf: _, ...rest } = schema;
  return { ...plainSchema(others[0], root), ...rest, nullable: true };
}

export function typeOf(schema, value) {
  if (Array.isArray(schema.enum)) return "enum";
  if (typeof value === "string" && withEscapes(value) !== value) return "json"; // an input does not show all of it
  const named = typeof schema.type === "string" ? schema.type.toLowerCase() : "";
  if (["string", "integer", "number", "boolean"].includes(named)) return named;
  if (named || schema.anyOf || schema.$ref) return "json";
  const guess = typeof value;
  return ["string", "number", "boolean"].includes(guess) ? guess : "json";
}

function numberFrom(text, type, schema) {
  const pattern = type === "integer" ? /^[+-]?\d+$/ : /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  if (!pattern.test(text)) return { error: type === "integer" ? "a whole number is needed" : "a number is needed" };
  const value = Number(text);
  if (type === "integer" && !Number.isSafeInteger(value)) return { error: "too large to be sent exactly" };
  if (schema.minimum !== undefined && value < schema.minimum) return { error: `at least ${schema.minimum}` };
  if (schema.maximum !== undefined && value > schema.maximum) return { error: `at most ${schema.maximum}` };
  return { value };
}

function jsonFrom(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { error: `not JSON: ${error.message}` };
  }
}

function control(type, schema, value, given) {
  if (type === "enum") {
    const node = el("select", "input", ...schema.enum.map((each) => el("option", "", withEscapes(String(each)))));
    node.selectedIndex = schema.enum.findIndex((each) => same(each, given ? value : schema.default));
    return [node, () => (node.selectedIndex < 0 ? { skip: true } : { value: schema.enum[node.selectedIndex] })];
  }
  if (type === "boolean") {
    const node = el("input", "check");
    node.type = "checkbox";
    node.checked = (given ? value : schema.default) === true;
    return [node, () => ({ value: node.checked })];
  }
  if (type === "json") {
    const node = el("textarea", "input");
    node.value = given ? withEscapes(JSON.stringify(value, null, 2)) : "";
    node.rows = Math.min(8, node.value.split("\n").length + 1);
    return [node, () => (!given && !node.value.trim() ? { skip: true } : jsonFrom(node.value))];
  }
  const long = type === "string" && typeof value === "string" && (value.includes("\n") || value.length > 60);
  const node = el(long ? "textarea" : "input", "input");
  const isSecret = schema.format === "password";
  if (!long) Object.assign(node, { type: isSecret ? "password" : "text", spellcheck: false });
  node.autocomplete = isSecret ? "new-password" : "off"; // a browser does not fill in what it keeps of other places
  if (type !== "string") node.inputMode = type === "integer" ? "numeric" : "decimal";
  node.value = value === null || value === undefined ? "" : String(value);
  if (schema.nullable && type !== "string") {
    return [node, () => (node.value.trim() ? numberFrom(node.value.trim(), type, schema) : { value: null })];
  }
  if (type === "string") {
    const read = () => (schema.nullable && !node.value ? { value: null } : { value: node.value });
    return [node, () => (!given && !node.value ? { skip: true } : read())];
  }
  return [node, () => (!given && !node.value.trim() ? { skip: true } : numberFrom(node.value.trim(), type, schema))];
}

// `needed`: whether a value has to be given; undefined where no schema says so.
export function field(name, described, args, root, { depth = 0, within = "", needed } = {}) {
  const schema = plainSchema(described, root);
  if (schema.properties && depth < DEEPEST && isObject(args[name] ?? {}))
    return group(name, schema, args, root, depth, within);
  const given = Object.hasOwn(args, name);
  const type = typeOf(schema, args[name]);
  const [node, read] = control(type, schema, args[name], given);
  const before = node.type === "checkbox" ? node.checked : node.value; // what was not touched is not sent
  node.id = newId();
  const isUnknown =
    depth === 0 && root.properties && !root.additionalProperties && !Object.hasOwn(root.properties, name);
  const kinds = [
    isUnknown ? "unknown" : "",
    { json: "JSON", enum: "one of" }[type] ?? type,
    schema.nullable && needed !== false ? "or empty" : "",
  ];
  if (!given && defaultOf(schema) !== undefined) kinds.push(`default ${shown(schema.default)}`);
  else if (needed === false) kinds.push("optional");
  const title = root["x-titles"] ? schema.title : null; // shown in place of name and kind
  const kind = title ? "" : ` ${kinds.filter(Boolean).join(", ")}`;
  const label = el(
    "label",
    "field-name",
    title ?? (isUnknown ? inAscii(name) : withEscapes(name)),
    el("span", "dim", kind),
  );
  label.htmlFor = node.id;
  const problem = el("div", "problem");
  problem.id = `${node.id}-problem`;
  problem.setAttribute("role", "alert");
  node.setAttribute("aria-describedby", problem.id);
  if (needed && type !== "boolean") node.setAttribute("aria-required", "true");
  const box = el(
    "div",
    "field",
    label,
    node,
    schema.description ? el("div", "dim", withEscapes(schema.description)) : null,
    problem,
  );
  const check = () => {
    const touched = (node.type === "checkbox" ? node.checked : node.value) !== before;
    const result = touched ? read() : { skip: true };
    problem.textContent = result.error ? withEscapes(`${within}${name}: ${result.error}`) : "";
    node.setAttribute("aria-invalid", String(Boolean(result.error)));
    return result.error ? { ...result, node } : result;
  };
  return { name, title, box, node, check };
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

export function fieldsOf(schema, args, root, depth = 0, within = "") {
  const known = schema?.properties ?? {};
  const names = [...new Set([...Object.keys(known), ...Object.keys(args)])];
  const needed = (name) => (Object.hasOwn(known, name) ? (schema.required ?? []).includes(name) : undefined);
  return names.map((name) => field(name, known[name] ?? {}, args, root, { depth, within, needed: needed(name) }));
}

// An object with known parts: a field for each of them.
function group(name, schema, args, root, depth, within) {
  const before = args[name] ?? {};
  const fields = fieldsOf(schema, before, root, depth + 1, `${within}${name}.`);
  const legend = el("legend", "field-name", withEscapes(name));
  const box = el(
    "fieldset",
    "group",
    legend,
    schema.description ? el("div", "dim", withEscapes(schema.description)) : null,
  );
  box.append(...fields.map((each) => each.box));
  const check = () => {
    const results = fields.map((each) => [each.name, each.check()]);
    const wrong = results.find(([, result]) => result.error);
    if (wrong) return wrong[1];
    const told = results.filter(([, result]) => !result.skip).map(([part, result]) => [part, result.value]);
    return told.length ? { value: { ...before, ...Object.fromEntries(told) } } : { skip: true };
  };
  return { name, box, node: fields[0]?.node, check };
}

// Which parts of a value are another: `address.city "Oslo" → "Rome"`.
export function differences(name, before, now) {
  if (same(before, now)) return [];
  if (!isObject(before) || !isObject(now)) {
    return [el("div", "", el("b", "", withEscapes(name)), ` ${shown(before)} → ${shown(now)}`)];
  }
  const parts = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  return parts.flatMap((part) => differences(`${name}.${part}`, before[part], now[part]));
}

// Escape leads out of a form first, and out of the view from there.
export function onEscape(form, leave) {
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation();
    leave();
  });
}
