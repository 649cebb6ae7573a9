// A JSON value as a tree, whose levels are built when they are opened.

import { button, el } from "./elements.js";

const LONG_TEXT = 2_000;

/**
 * @param {any} value
 * @param {string} [name]
 * @param {boolean} [open]
 */
export function jsonTree(value, name = "", open = true) {
  if (value === null || typeof value !== "object") return el("div", "leaf", jsonName(name), jsonLeaf(value));
  const entries = Array.isArray(value) ? value.map((each, at) => [String(at), each]) : Object.entries(value);
  const [left, right] = Array.isArray(value) ? "[]" : "{}";
  if (!entries.length) return el("div", "leaf", jsonName(name), el("span", "dim", left + right));
  const size = `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`;
  const node = el(
    "details",
    "branch",
    el("summary", "", jsonName(name), el("span", "dim", `${left} ${size} ${right}`)),
  );
  const fill = () => {
    if (node.childElementCount === 1)
      node.append(el("div", "twigs", ...entries.map(([key, each]) => jsonTree(each, key, false))));
  };
  node.addEventListener("toggle", () => node.open && fill());
  if (open) fill();
  node.open = open;
  return node;
}

/** @param {string} name */
function jsonName(name) {
  return name === "" ? null : el("span", "name", `${name}: `);
}

/** @param {any} value */
function jsonLeaf(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const node = el("span", typeof value === "string" ? "string" : "atom", text.slice(0, LONG_TEXT));
  if (text.length <= LONG_TEXT) return node;
  const more = button(`… ${(text.length - LONG_TEXT).toLocaleString("en")} more`, "small", () => {
    node.textContent = text;
    more.remove();
  });
  return el("span", "", node, " ", more);
}
