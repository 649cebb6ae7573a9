// Reading JSON schemas, and values by a schema. Independent of the page.

import { withEscapes } from "./words.js";

/** @import { Choice, Result, Schema } from "./types" */

/**
 * The default of a parameter; undefined for none, and for null.
 *
 * @param {Schema | undefined} schema
 */
export const defaultOf = (schema) => schema?.default ?? undefined;

/**
 * The schema with references resolved, and `X or null` as X with `nullable`.
 *
 * @param {Schema} schema
 * @param {Schema} root
 * @returns {Schema}
 */
export function plainSchema(schema, root) {
  const reference = /^#\/\$defs\/(.+)$/.exec(schema.$ref ?? "")?.[1];
  const named = reference && root.$defs?.[reference];
  if (named) return { ...plainSchema(named, { $defs: {} }), ...schema, $ref: undefined };
  if (Array.isArray(schema.type) && schema.type.length === 2 && schema.type.includes("null")) {
    return { ...schema, type: schema.type.find((type) => type !== "null"), nullable: true };
  }
  const { anyOf = [], ...rest } = schema;
  const others = anyOf.filter(({ type }) => type !== "null");
  if (others.length !== 1 || others.length === anyOf.length) return schema;
  return { ...plainSchema(others[0], root), ...rest, nullable: true };
}

/**
 * The kind of control for a parameter: enum, string, integer, number, boolean or json.
 *
 * @param {Schema} schema
 * @param {unknown} [value]
 */
export function typeOf(schema, value) {
  if (Array.isArray(schema.enum)) return "enum";
  if (typeof value === "string" && withEscapes(value) !== value) return "json"; // a text input hides invisible characters
  const named = typeof schema.type === "string" ? schema.type.toLowerCase() : "";
  if (["string", "integer", "number", "boolean"].includes(named)) return named;
  if (named || schema.anyOf || schema.$ref) return "json";
  const guess = typeof value;
  return ["string", "number", "boolean"].includes(guess) ? guess : "json";
}

/**
 * @param {string} text
 * @param {string} type
 * @param {Schema} schema
 * @returns {Result}
 */
export function numberFrom(text, type, schema) {
  const pattern = type === "integer" ? /^[+-]?\d+$/ : /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  if (!pattern.test(text)) return { error: type === "integer" ? "a whole number is needed" : "a number is needed" };
  const value = Number(text);
  if (type === "integer" && !Number.isSafeInteger(value)) return { error: "too large to be sent exactly" };
  if (schema.minimum !== undefined && value < schema.minimum) return { error: `at least ${schema.minimum}` };
  if (schema.maximum !== undefined && value > schema.maximum) return { error: `at most ${schema.maximum}` };
  return { value };
}

/**
 * @param {string} text
 * @returns {Result}
 */
export function jsonFrom(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { error: `not JSON: ${error instanceof Error ? error.message : error}` };
  }
}

/** @param {unknown} value */
const choiceLabel = (value) =>
  value === null ? "Nothing" : withEscapes(typeof value === "string" ? value : JSON.stringify(value));

/**
 * The values to choose from; null for a schema of anything else.
 *
 * @param {Schema} described
 * @param {Schema} root
 * @returns {Choice[] | null}
 */
export function choicesOf(described, root) {
  const schema = plainSchema(described, root);
  const nothing = schema.nullable ? [{ label: "Nothing", value: null }] : [];
  if (Object.hasOwn(schema, "const")) {
    return [{ label: schema.title ?? choiceLabel(schema.const), value: schema.const }];
  }
  if (Array.isArray(schema.enum)) {
    return [...schema.enum.map((value) => ({ label: choiceLabel(value), value })), ...nothing];
  }
  if (schema.type === "boolean") return [{ label: "Yes", value: true }, { label: "No", value: false }, ...nothing];
  if (schema.type === "null") return [{ label: "Nothing", value: null }];
  const choices = (schema.oneOf ?? schema.anyOf ?? []).map((option) => choicesOf(option, root));
  return choices.length && choices.every((each) => each !== null) ? choices.flat() : null;
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
