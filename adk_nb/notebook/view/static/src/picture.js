// The drawing of a team, with the states of its nodes and the path of the run.

import { el, put, setAttribute, setLabel, shapeOf } from "./elements.js";
import { STATES } from "./words.js";

/** @import { Drawing } from "./types" */
/** @import { Store } from "./store.js" */

const SHAPES = new Set(["rect", "path", "text"]);
const PLACED = new Set(
  (
    "x y width height rx d fill fill-opacity stroke stroke-opacity stroke-dasharray text-anchor font-size " +
    "font-weight"
  ).split(" "),
);

/** @param {Drawing} drawing */
export function svg({ width, height, shapes }) {
  const root = shapeOf("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  root.style.minWidth = `${Math.round(width * 0.65)}px`; // narrower places scroll it
  for (const { tag, at, text, key } of shapes) {
    if (!SHAPES.has(tag)) continue;
    const shape = shapeOf(tag, Object.fromEntries(Object.entries(at).filter(([name]) => PLACED.has(name))));
    shape.dataset.key = key;
    shape.textContent = text;
    root.append(shape);
  }
  return root;
}

export class Picture {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Drawing | null} */
    this.drawn = null;
    this.node = el("div", "picture");
    setAttribute(this.node, "role", "img");
    this.node.tabIndex = 0; // focusable, so that it can be scrolled by keyboard
  }

  // Scroll the active node into view within the picture, without moving the page.
  followPath() {
    const box = this.node.getBoundingClientRect();
    const now = this.node.querySelector("rect:is([data-mark=now], [data-mark=waits]):not([fill=none])");
    if (!now) return;
    const at = now.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom)
      this.node.scrollTop += (at.top + at.bottom - box.top - box.bottom) / 2;
    if (at.left < box.left || at.right > box.right)
      this.node.scrollLeft += (at.left + at.right - box.left - box.right) / 2;
  }

  // Draw the shapes once, then only update their marks.
  paint() {
    const { drawing, marks } = this.store;
    this.node.hidden = !drawing;
    if (!drawing) return;
    if (this.drawn !== drawing) {
      this.drawn = drawing;
      put(this.node, svg(drawing));
    }
    for (const node of this.node.querySelectorAll("svg > *")) if (node instanceof SVGElement) this.#mark(node, marks);
    setLabel(this.node, [drawing.title, ...this.stateTexts()].join("; "));
    this.followPath();
  }

  /**
   * @param {SVGElement} node
   * @param {Record<string, string>} marks
   */
  #mark(node, marks) {
    const { key = "" } = node.dataset;
    const mark = marks[key.replace(/^s:/, "n:")] ?? "";
    if ((node.dataset.mark ?? "") === mark) return;
    node.dataset.mark = mark;
    if (key.startsWith("s:")) node.textContent = STATES[mark]?.[0] ?? "";
    else if (key.startsWith("c:")) node.textContent = mark;
  }

  /** The states of the nodes as text. */
  stateTexts() {
    const { drawing, marks } = this.store;
    const names = (drawing?.shapes ?? []).filter(({ at, key }) => at["font-weight"] && key.startsWith("n:"));
    return Object.entries(STATES).flatMap(([mark, [, word]]) => {
      const marked = names.filter(({ key }) => mark !== "was" && marks[key] === mark).map(({ text }) => text);
      return marked.length ? [`${word}: ${[...new Set(marked)].join(", ")}`] : [];
    });
  }
}
