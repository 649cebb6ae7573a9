// The line of a served agent: its address, and its token for whoever asks for it. No state of the widget has the token:
// state can be saved with a notebook.

import { button, el, put } from "./elements.js";

/** @import { Model } from "./types" */

const COPIED = 1500; // milliseconds that a button says so

/**
 * @param {string} label
 * @param {string} text
 */
function copyButton(label, text) {
  const node = button(label, "copy", async () => {
    try {
      await navigator.clipboard.writeText(text);
      node.textContent = "Copied";
    } catch {
      node.textContent = "Select the text, and copy it"; // a page without a secure origin has no clipboard
    }
    setTimeout(() => {
      node.textContent = label;
    }, COPIED);
  });
  return node;
}

/** @param {{token: string, curl: string, page: string}} secret */
function secretLines({ token, curl, page }) {
  const lines = [
    el(
      "div",
      "served-line",
      el("span", "served-name", "token"),
      el("code", "", token),
      copyButton("Copy token", token),
    ),
    el(
      "div",
      "served-line",
      el("span", "served-name", "try it"),
      el("code", "", curl),
      copyButton("Copy command", curl),
    ),
  ];
  if (page) {
    const link = el("a", "", "Open Google's dev UI");
    Object.assign(link, { href: page, target: "_blank", rel: "noopener noreferrer" });
    lines.push(el("div", "served-line", el("span", "served-name", "page"), link));
  }
  return lines;
}

export default {
  /** @param {{model: Model, el: HTMLElement}} page */
  render({ model, el: place }) {
    const status = el("span", "served-status");
    const secret = el("div", "served-secret");
    const paths = el("div", "served-paths", model.get("paths"));
    const show = button("Show token", "served-show", () => {
      if (secret.childElementCount) {
        secret.replaceChildren();
        show.textContent = "Show token";
        show.setAttribute("aria-expanded", "false");
      } else model.send({ kind: "token" });
    });
    show.setAttribute("aria-expanded", "false");
    const paint = () => {
      const isRunning = model.get("running");
      status.textContent = isRunning
        ? `${model.get("name")} is served at ${model.get("url")}`
        : `${model.get("name")} is served no more`;
      show.hidden = paths.hidden = !isRunning;
      if (!isRunning) secret.replaceChildren();
    };
    const hear = (/** @type {any} */ message) => {
      if (message.kind !== "token") return;
      put(secret, ...secretLines(message));
      show.textContent = "Hide token";
      show.setAttribute("aria-expanded", "true");
    };
    paint();
    model.on("change:running", paint);
    model.on("msg:custom", hear);
    place.append(el("div", "served", el("div", "served-head", status, show), paths, secret));
    return () => {
      model.off("change:running", paint);
      model.off("msg:custom", hear);
    };
  },
};
