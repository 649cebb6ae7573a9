// What is shown of a run: its frame and the parts in it, painted once a frame.

import { Announcer } from "./announce.js";
import { Cards } from "./cards.js";
import { ChatBox } from "./chat_box.js";
import { button, el, put } from "./elements.js";
import { Keys } from "./keys.js";
import { Lanes } from "./lanes.js";
import { Events } from "./log.js";
import { LogTools } from "./log_tools.js";
import { Missed } from "./missed.js";
import { MountedPanel, panelOf } from "./panels.js";
import { Picture } from "./picture.js";
import { StatePanel } from "./state_panel.js";
import { Summary } from "./summary.js";
import { Tabs } from "./tabs.js";
import { STATUS } from "./words.js";

export class View {
  constructor(store, host, manager) {
    this.store = store;
    this.missed = new Missed(store, manager);
    this.frame = 0;
    this.build(host);
    this.reset();
  }

  build(host) {
    this.title = el("span", "title");
    this.status = el("span", "status");
    this.stop = button("Stop", "stop", () => {
      this.stopping = true;
      this.store.say({ kind: "stop" });
      this.schedule();
    });
    this.notice = el("div", "notice");
    this.notice.setAttribute("role", "note");
    this.lanes = new Lanes(this.store);
    this.picture = new Picture(this.store);
    this.events = new Events(this.store, this);
    this.state = new StatePanel(this.store);
    this.cards = new Cards(this.store, this);
    this.foot = el("div", "foot");
    this.said = el("div", "hidden");
    this.said.setAttribute("role", "status");
    const head = el("div", "head", this.title, this.status, this.stop);
    head.addEventListener("keydown", (event) => event.stopPropagation()); // Enter is the button's, not the notebook's
    const panels = this.store.listed.map(panelOf).filter((panel) => panel !== null);
    this.tabs = new Tabs(
      panels.map((panel) => new MountedPanel(panel, this)),
      this,
    );
    this.log = this.tabs.panels.find(({ name }) => name === "events");
    this.tools = new LogTools(this.store, this);
    this.summary = new Summary(this.store, this);
    this.bar = el("div", "bar", this.summary.button, this.tabs.node, this.tools.node);
    this.bar.addEventListener("keydown", (event) => event.stopPropagation());
    this.root = el(
      "div",
      "view",
      head,
      this.notice,
      this.summary.node,
      this.bar,
      this.lanes.node,
      ...this.tabs.panels.map(({ node }) => node),
      this.cards.node,
      this.foot,
    );
    this.composer = this.store.box ? new ChatBox(this.store, this) : null;
    if (this.composer) {
      this.cards.node.after(this.composer.node);
      this.root.dataset.box = "";
      this.root.style.setProperty("--adknb-height", `${this.store.box.height}px`);
    }
    this.announcer = new Announcer(this.store);
    this.root.append(this.said, this.announcer.node);
    this.keys = new Keys(this);
    this.box = el("div", "root", this.root);
    host.append(this.box);
  }

  reset() {
    this.events.reset();
    this.missed.ask();
    this.stale = true;
    this.schedule();
  }

  touch(op) {
    this.events.touch(op);
    this.announcer.touch(op);
    this.missed.touch(op);
    if (op.op === "status") this.stopping = false;
    this.composer?.touch(op);
    if (op.op === "panel") this.stale = true;
    for (const part of [this.tabs.current, this.tools]) part.touch?.(op);
    if (this.log.node.hidden || (op.op !== "append" && op.op !== "text")) this.stale = true;
    this.schedule();
  }

  schedule() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint() {
    this.placed ||= this.box.isConnected;
    const follow = this.events.paint();
    this.lanes.paint();
    if (this.stale) this.paintFrame();
    this.stale = false;
    this.lanes.node.hidden ||= this.summary.folded;
    this.tools.paint(this.events.words ? this.events.shown().length : null, this.summary.folded);
    follow();
  }

  paintFrame() {
    const { store } = this;
    const [icon, word] = STATUS[store.status.status] ?? ["", store.status.status];
    const running = store.status.status === "running";
    this.title.textContent = store.title;
    this.root.dataset.status = store.status.status;
    const failed = store.box
      ? 0
      : [...store.rows.values()].filter((row) => row.kind === "call" && row.ok === false).length;
    put(
      this.status,
      failed ? el("span", "failed bad", `${failed} tool${failed === 1 ? "" : "s"} failed`) : null,
      el("span", "icon", icon),
      ` ${store.status.text || word}`,
    );
    this.stop.hidden = !running;
    this.stop.disabled = Boolean(this.stopping);
    this.stop.textContent = this.stopping ? "Stopping…" : "Stop";
    this.notice.textContent = store.notice;
    this.notice.hidden = !store.notice;
    this.foot.textContent = store.usage.text;
    this.foot.title = store.usage.title ?? "";
    this.foot.hidden = !store.usage.text;
    this.summary.paint();
    this.tabs.paint();
    const { folded } = this.summary;
    const empty = !(store.rows.size || store.state.length || store.drawing);
    this.bar.hidden = empty;
    this.bar.dataset.folded = folded;
    if (folded || empty) for (const panel of this.tabs.panels) panel.node.hidden = true;
    this.tabs.node.hidden ||= folded;
    this.picture.paint();
    this.state.paint();
    if (!folded && !empty) this.tabs.current.paint();
    this.cards.paint();
    this.composer?.paint();
  }

  // As soon as the page has a frame for it.
  repaint() {
    this.stale = true;
    this.schedule();
  }

  // Go to what is told of an event in the log.
  showEvent(id) {
    this.tabs.select(this.log);
    this.events.reveal(id);
  }

  // Show all, not question and answer alone.
  unfold() {
    this.summary.chosen = false;
    this.stale = true;
    this.paint();
  }

  // Out of the view, to the cell it stands in.
  leave() {
    const cell = this.box.closest(".jp-Cell");
    document.activeElement?.blur();
    cell?.focus({ preventScroll: true });
  }

  // Whether Jupyter has emptied the place where it stood, as when an output is told anew.
  get isOrphan() {
    return this.placed && !this.box.isConnected && !this.box.closest(".jp-OutputArea");
  }

  moveTo(host) {
    host.append(this.box);
    this.reset();
  }

  remove() {
    cancelAnimationFrame(this.frame);
    for (const panel of this.tabs.panels) panel.closed();
    this.store.views.delete(this);
    this.box.remove();
  }
}
