// An output whose parts can be copied: the html that stands in the saved notebook, with buttons.

import { copyButton, el, setLabel } from "./elements.js";
import { keptOutOfTheFile } from "./keep.js";
import { folds } from "./markup.js";

/** @import { Model } from "./types" */

/**
 * @param {Model} model
 * @param {HTMLElement} host
 */
export function showPage(model, host) {
  keptOutOfTheFile(model.widget_manager);
  const node = el("div", "root page-of-parts", folds(model.get("html")));
  node.classList.add("jp-RenderedHTMLCommon", "jp-RenderedHTML"); // the look of the saved form
  for (const part of node.querySelectorAll("details")) addCopy(part);
  host.append(node);
  return () => node.remove();
}

/** @param {HTMLDetailsElement} part */
function addCopy(part) {
  const [summary, content] = part.children;
  if (!content) return;
  const copy = copyButton("Copy", () => textOf(content));
  copy.classList.add("adknb-part-copy");
  setLabel(copy, `Copy ${summary.firstElementChild?.textContent ?? ""}`);
  summary.after(copy);
}

/** @param {Element} content */
function textOf(content) {
  const rows = [...content.querySelectorAll("tbody tr")];
  if (!rows.length) return (content.textContent ?? "").replace(/\n$/, "");
  return rows.map((row) => [...row.children].map(({ textContent }) => textContent).join("\t")).join("\n");
}
