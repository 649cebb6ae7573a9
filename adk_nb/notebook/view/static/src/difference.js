// A difference of two texts, with its lines marked.

import { el } from "./elements.js";

const KINDS = /** @type {Record<string, string>} */ ({
  "+": "diff diff-come",
  "-": "diff diff-gone",
  "@": "diff diff-place",
});
const PLACE = /^@@ -(\d+)\S* \+\S+ @@/;

/**
 * The lines of a unified diff without its head, as Python's difflib writes it; null for any other text.
 *
 * @param {string} text
 * @returns {HTMLElement[] | null}
 */
export function differenceLines(text) {
  const lines = text.split("\n");
  if (!PLACE.test(lines[0]) || lines.some((line) => line && !/^[-+ @]/.test(line))) return null;
  return lines
    .filter((line, index) => index || PLACE.exec(line)?.[1] !== "1")
    .map((line) => el("span", KINDS[line[0]] ?? "diff", line.replace(PLACE, "line $1") || " "));
}
