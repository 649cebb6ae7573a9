// Functions that make elements. All content is inserted as text, except in markup.js.

/** @import { Child } from "./types" */

const FOLD_ABOVE = 480; // pixels; .adknb-clip shows 420, so that a fold saves several lines
// Two kernels on one page have separate modules, whose counts alone would give the same ids.
const mine = `adknb-${Math.random().toString(36).slice(2)}`;
let ids = 0;

export function newId() {
  ids += 1;
  return `${mine}-${ids}`;
}

/**
 * In the bundle a call of this is half as long as one of the method.
 *
 * @param {Element} node
 * @param {string} name
 * @param {string} value
 */
export function setAttribute(node, name, value) {
  node.setAttribute(name, value);
}

/**
 * What a screen reader says of a node.
 *
 * @param {Element} node
 * @param {string} label
 */
export function setLabel(node, label) {
  setAttribute(node, "aria-label", label);
}

/**
 * @param {Element} node What opens and closes something.
 * @param {boolean} isOpen
 */
export function setExpanded(node, isOpen) {
  setAttribute(node, "aria-expanded", String(isOpen));
}

/** @param {Child[]} children */
const present = (children) =>
  children.filter((child) => child !== null && child !== undefined && child !== "").map((child) => child ?? "");

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} name Classes, without the prefix.
 * @param {...Child} children
 */
export function el(tag, name, ...children) {
  const node = document.createElement(tag);
  const classes = name.split(" ").filter(Boolean);
  if (classes.length) node.className = classes.map((part) => `adknb-${part}`).join(" ");
  node.append(...present(children));
  return node;
}

/**
 * @param {string} label
 * @param {string} name
 * @param {(event: MouseEvent) => void} onClick
 */
export function button(label, name, onClick) {
  const node = el("button", `button ${name}`, label);
  node.type = "button";
  node.addEventListener("click", onClick);
  return node;
}

/**
 * A row of buttons, which can be turned off together.
 *
 * @param {...Child} children
 */
export function buttonRow(...children) {
  return el("fieldset", "buttons", ...children);
}

/**
 * @template {HTMLElement} Place
 * @param {Place} node
 * @param {...Child} children
 */
export function put(node, ...children) {
  node.replaceChildren(...present(children));
  return node;
}

/**
 * An SVG element.
 *
 * @param {string} tag
 * @param {Record<string, unknown>} attributes
 * @param {string} [text]
 */
export function shapeOf(tag, attributes, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, String(value));
  node.textContent = text;
  return node;
}

/**
 * Content that is cut at a height, with a button to show the rest.
 *
 * @param {...Child} content
 */
export function foldable(...content) {
  const inner = el("div", "", ...content);
  const clip = el("div", "clip", inner);
  const more = button("Show all", "small show-all", () => {
    open = !open;
    paint();
    if (!open) clip.scrollIntoView({ block: "nearest" });
  });
  let open = false;
  const paint = () => {
    const long = inner.offsetHeight > FOLD_ABOVE;
    clip.toggleAttribute("data-cut", long && !open);
    more.hidden = !long;
    more.textContent = open ? "Show less" : "Show all";
    setExpanded(more, open);
  };
  more.hidden = true;
  more.addEventListener("keydown", (event) => event.stopPropagation()); // Enter is the button's, not the notebook's
  new ResizeObserver(paint).observe(inner);
  return el("div", "", clip, more);
}

/**
 * A button that copies text, with a short confirmation.
 *
 * @param {string} label
 * @param {() => string} text
 */
export function copyButton(label, text) {
  const node = button(label, "small", async () => {
    try {
      await navigator.clipboard.writeText(text());
      node.textContent = "Copied";
    } catch {
      node.textContent = "Select the text, and copy it"; // a page without a secure origin has no clipboard
    }
    setTimeout(() => {
      node.textContent = label;
    }, 1500);
  });
  return node;
}

/**
 * @param {string} name
 * @param {string} type
 * @param {BlobPart} content
 */
export function download(name, type, content) {
  const link = el("a", "");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
