// The line of a served agent: its address, and a button that shows the token. The token is not in the widget's state, which
// can be saved with a notebook.

import { button, copyButton, el, put, setExpanded } from "./elements.js";

/** @import { Model } from "./types" */

/** @param {{token: string, curl: string, page: string}} secret */
function secretLines({ token, curl, page }) {
  const lines = [
    el(
      "div",
      "served-line",
      el("span", "served-name", "token"),
      el("code", "", token),
      copyButton("Copy token", () => token),
    ),
    el(
      "div",
      "served-line",
      el("span", "served-name", "try it"),
      el("code", "", curl),
      copyButton("Copy command", () => curl),
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
        setExpanded(show, false);
      } else model.send({ kind: "token" });
    });
    setExpanded(show, false);
    const paint = () => {
      const isRunning = model.get("running");
      status.textContent = isRunning
        ? `${model.get("name")} is served at ${model.get("url")}`
        : `${model.get("name")} is served no more`;
      show.hidden = paths.hidden = !isRunning;
      if (!isRunning) secret.replaceChildren();
    };
    const receive = (/** @type {any} */ message) => {
      if (message.kind !== "token") return;
      put(secret, ...secretLines(message));
      show.textContent = "Hide token";
      setExpanded(show, true);
    };
    paint();
    model.on("change:running", paint);
    model.on("msg:custom", receive);
    place.append(el("div", "served", el("div", "served-head", status, show), paths, secret));
    return () => {
      model.off("change:running", paint);
      model.off("msg:custom", receive);
    };
  },
};
