// A row of the log as one line of text.

/** @import { Row } from "./types" */

/** @param {Pick<Row, "author">} row */
export const authorOf = (row) => (row.author === "user" ? "you" : row.author);

/** @param {Row} row */
export function rowLine(row) {
  const who = authorOf(row);
  if (row.kind === "call") return `${who} ${row.tool}(${row.args}) ${row.result ?? row.text}`.trim();
  return `${who} ${row.kind === "text" || row.kind === "user" ? "" : `${row.kind}: `}${row.text.replace(/\s+/g, " ")}`;
}
