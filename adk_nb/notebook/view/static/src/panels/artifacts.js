// The files that a run has saved: each as a picture, a table, a page or text, and to be downloaded.

import { button, download, el } from "../elements.js";
import { isolated, picture, safeMarkup } from "../markup.js";
import { registerPanel } from "../panels.js";

class Artifacts {
  constructor(root, view) {
    this.store = view.store;
    this.root = root;
    this.requested = new Set();
    this.nodes = new Map(); // artifact id -> {node, drawn}
  }

  opened() {
    for (const id of this.store.artifacts.keys()) {
      if (this.requested.has(id)) continue;
      this.requested.add(id);
      this.store.say({ kind: "need", what: "artifact", id });
    }
  }

  touch(op) {
    if (op.op === "artifact") this.opened();
  }

  paint() {
    for (const one of this.store.artifacts.values()) {
      const told = this.store.panels.get(`artifact/${one.id}`);
      const known = this.nodes.get(one.id);
      if (known && known.drawn === told) continue;
      const node = this.artifact({ ...one, ...told }, Boolean(told));
      if (known) known.node.replaceWith(node);
      else this.root.append(node);
      this.nodes.set(one.id, { node, drawn: told });
    }
  }

  artifact(one, whole) {
    const facts = `version ${one.version} · ${one.mime} · ${bytes(one.size)}`;
    const head = el("div", "artifact-head", el("b", "", one.name), el("span", "dim", facts));
    if (one.data) {
      const save = button("Download", "small", () =>
        download(one.name.split("/").pop(), one.mime, fromBase64(one.data)),
      );
      save.setAttribute("aria-label", `Download ${one.name}`);
      head.append(save);
    }
    const body = whole ? this.content(one) : el("div", "dim", "…");
    return el("div", "artifact", head, body);
  }

  content(one) {
    if (one.image) return picture(one.image, one.alt);
    if (one.html) return el("div", "html", safeMarkup(one.html));
    if (one.page) return isolated(one.page, one.alt);
    if (one.text) return el("pre", "json", one.text);
    return el("div", "dim", one.data ? "Nothing that a page can show; it can be downloaded." : "Too large for a page.");
  }
}

function bytes(size) {
  if (size < 1000) return `${size} bytes`;
  return size < 1_000_000 ? `${(size / 1000).toFixed(1)} kB` : `${(size / 1_000_000).toFixed(1)} MB`;
}

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
