// The artifacts that a run has saved, each as a picture, a table, a page or text, with a download.

import { button, download, el, setLabel } from "../elements.js";
import { isolated, picture, safeMarkup } from "../markup.js";
import { registerPanel } from "../panels.js";
import { size } from "../words.js";

/** @import { Artifact, Op } from "../types" */
/** @import { View } from "../view.js" */

class Artifacts {
  /**
   * @param {HTMLElement} root
   * @param {View} view
   */
  constructor(root, view) {
    this.store = view.store;
    this.root = root;
    /** @type {Set<string>} */
    this.requested = new Set();
    /** @type {Map<string, {node: HTMLElement, drawn: any}>} */
    this.nodes = new Map();
  }

  opened() {
    for (const id of this.store.artifacts.keys()) {
      if (this.requested.has(id)) continue;
      this.requested.add(id);
      this.store.send({ kind: "need", what: "artifact", id });
    }
  }

  /** @param {Op} op */
  touch(op) {
    if (op.op === "artifact") this.opened();
  }

  paint() {
    for (const artifact of this.store.artifacts.values()) {
      const content = this.store.panels.get(`artifact/${artifact.id}`);
      const known = this.nodes.get(artifact.id);
      if (known && known.drawn === content) continue;
      const node = this.artifact({ ...artifact, ...content }, Boolean(content));
      if (known) known.node.replaceWith(node);
      else this.root.append(node);
      this.nodes.set(artifact.id, { node, drawn: content });
    }
  }

  /**
   * @param {Artifact} artifact
   * @param {boolean} whole
   */
  artifact(artifact, whole) {
    const facts = `version ${artifact.version} · ${artifact.mime} · ${size(artifact.size)}`;
    const head = el("div", "artifact-head", el("b", "", artifact.name), el("span", "dim", facts));
    const { data, name, mime } = artifact;
    if (data) {
      const save = button("Download", "small", () => download(name.split("/").pop() ?? name, mime, fromBase64(data)));
      setLabel(save, `Download ${name}`);
      head.append(save);
    }
    const body = whole ? this.content(artifact) : el("div", "dim", "…");
    return el("div", "artifact", head, body);
  }

  /** @param {Artifact} artifact */
  content(artifact) {
    if (artifact.image) return picture(artifact.image, artifact.alt);
    if (artifact.html) return el("div", "html", safeMarkup(artifact.html));
    if (artifact.page) return isolated(artifact.page, artifact.alt);
    if (artifact.text) return el("pre", "json", artifact.text);
    return el(
      "div",
      "dim",
      artifact.data ? "Nothing that a page can show; it can be downloaded." : "Too large for a page.",
    );
  }
}

/** @param {string} text */
function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

registerPanel({
  name: "artifacts",
  title: "Artifacts",
  asks: null,
  exists: (store) => store.artifacts.size > 0,
  mount: (root, view) => new Artifacts(root, view),
});
