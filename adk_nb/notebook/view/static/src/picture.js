// The drawing of a team: who works, waits or failed, and the way that was taken.

import { el, put } from "./elements.js";
import { STANDS } from "./words.js";

const SHAPES = new Set(["rect", "path", "text"]);
const PLACED = new Set(
  (
    "x y width height rx d fill fill-opacity stroke stroke-opacity stroke-dasharray text-anchor font-size " +
    "font-weight"
  ).split(" "),
);

export function svg({ width, height, shapes }) {
  const node = (tag, at) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(at)) made.setAttribute(name, value);
    return made;
  };
  const root = node("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  root.style.minWidth = `${Math.round(width * 0.65)}px`; // then it is scrolled
  for (const { tag, at, text, key } of shapes) {
    if (!SHAPES.has(tag)) continue;
    const shape = node(tag, Object.fromEntries(Object.entries(at).filter(([name]) => PLACED.has(name))));
    shape.dataset.key = key;
    shape.textContent = text;
    root.append(shape);
  }
  return root;
}

export class Picture {
  constructor(store) {
    this.store = store;
    this.drawn = null;
    this.node = el("div", "picture");
    this.node.setAttribute("role", "img");
    this.node.tabIndex = 0; // it may have to be scrolled
  }

  // Keep what works now in sight, without moving the page.
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

  // Its shapes once, then only their marks.
  paint() {
    const { drawing, marks } = this.store;
    this.node.hidden = !drawing;
    if (!drawing) return;
    if (this.drawn !== drawing) {
      this.drawn = drawing;
      put(this.node, svg(drawing));
    }
    for (const node of this.node.querySelectorAll("[data-key]")) {
      const { key } = node.dataset;
      const mark = marks[key.replace(/^s:/, "n:")] ?? "";
      if ((node.dataset.mark ?? "") === mark) continue;
      node.dataset.mark = mark;
      if (key.startsWith("s:")) node.textContent = STANDS[mark]?.[0] ?? "";
      else if (key.startsWith("c:")) node.textContent = mark;
    }
    this.node.setAttribute("aria-label", [drawing.title, ...this.standing()].join("; "));
    this.followPath();
  }

  // Who works, waits or failed, in words.
  standing() {
    const { drawing, marks } = this.store;
    const names = drawing.shapes.filter(({ at, key }) => at["font-weight"] && key.startsWith("n:"));
    return Object.entries(STANDS)
      .filter(([mark]) => mark !== "was")
      .map(([mark, [, word]]) => [word, names.filter(({ key }) => marks[key] === mark).map(({ text }) => text)])
      .filter(([, found]) => found.length)
      .map(([word, found]) => `${word}: ${[...new Set(found)].join(", ")}`);
  }
}
