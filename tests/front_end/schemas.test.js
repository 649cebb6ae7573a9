import assert from "node:assert/strict";
import { test } from "node:test";

import { choicesOf, jsonFrom, numberFrom, plainSchema, typeOf } from "../../adk_nb/notebook/view/static/src/schemas.js";
import { duration, valueText, withEscapes } from "../../adk_nb/notebook/view/static/src/words.js";

test("a reference is followed, and X or null is X that may be left empty", () => {
  const root = { $defs: { City: { type: "string", title: "City" } } };

  const schema = plainSchema({ anyOf: [{ $ref: "#/$defs/City" }, { type: "null" }], default: null }, root);

  assert.deepEqual([schema.type, schema.title, schema.nullable, schema.default], ["string", "City", true, null]);
});

test("a definition that leads to itself ends", () => {
  const root = { $defs: { Node: { $ref: "#/$defs/Node" } } };

  assert.equal(typeOf(plainSchema({ $ref: "#/$defs/Node" }, root)), "json");
});

test("text that does not show itself is edited as JSON", () => {
  assert.deepEqual([typeOf({ type: "string" }, "plain"), typeOf({ type: "string" }, "a\u202eb")], ["string", "json"]);
});

test("numbers are refused where they cannot be sent exactly, or do not fit", () => {
  assert.deepEqual(numberFrom("12", "integer", { maximum: 20 }), { value: 12 });
  assert.deepEqual(numberFrom("1e3", "number", {}), { value: 1000 });
  for (const [text, type, schema] of /** @type {[string, string, object][]} */ ([
    ["1.5", "integer", {}],
    ["0x10", "number", {}],
    ["9007199254740993", "integer", {}],
    ["21", "integer", { maximum: 20 }],
    ["-1", "number", { minimum: 0 }],
  ])) {
    assert.equal(typeof numberFrom(text, type, schema).error, "string");
  }
});

test("what is no JSON is said, and changes nothing", () => {
  assert.deepEqual(jsonFrom('{"a": [1]}'), { value: { a: [1] } });
  assert.match(jsonFrom("{a").error ?? "", /JSON/);
});

test("few values are choices, and anything else is none", () => {
  const labels = (/** @type {object} */ schema) => choicesOf(schema, {})?.map(({ label }) => label) ?? null;

  assert.deepEqual(labels({ type: "boolean" }), ["Yes", "No"]);
  assert.deepEqual(labels({ anyOf: [{ enum: ["a", 1] }, { type: "null" }] }), ["a", "1", "Nothing"]);
  assert.deepEqual(labels({ anyOf: [{ const: 1, title: "One" }, { type: "string" }] }), null);
});

test("a text of several lines is shown as these lines, with what cannot be seen still escaped", () => {
  assert.equal(valueText('"one\\ntwo"'), "one\ntwo");
  assert.equal(valueText('"one\\n\\u202etwo"'), "one\n\\u202etwo");
  assert.equal(valueText('"one\\ntw…'), '"one\ntw…');
  assert.equal(valueText('"one"'), '"one"');
  assert.equal(valueText('{"a": "b\\nc"}'), '{"a": "b\\nc"}');
});

test("times are told in the unit one reads them in", () => {
  assert.deepEqual(
    [duration(null), duration(12.4), duration(1500), duration(125_000)],
    ["", "12 ms", "1.5 s", "2 min 5 s"],
  );
});

test("emoji stay, and marks that turn text around do not", () => {
  assert.equal(withEscapes("👩‍💻 a\u200bb"), "👩‍💻 a\\u200bb");
});
