import assert from "node:assert/strict";
import { test } from "node:test";

import { rowLine } from "../../adk_nb/notebook/view/static/src/row_text.js";
import { append } from "./fixtures.js";

/** @import { Row } from "../../adk_nb/notebook/view/static/src/types" */

/** @param {Partial<Row>} fields */
function line(fields) {
  const op = append("r", fields);
  assert.equal(op.op, "append");
  return rowLine(op.row);
}

test("the person is called you, whatever the row tells of", () => {
  assert.equal(line({ author: "user", kind: "user", text: "Hello" }), "you Hello");
  assert.equal(line({ author: "user", kind: "marker", text: "writes" }), "you marker: writes");
  assert.equal(line({ author: "clerk", text: "Hello" }), "clerk Hello");
});
