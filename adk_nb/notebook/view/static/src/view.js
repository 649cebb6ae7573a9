// The view of a run: a frame and its parts, painted at most once per animation frame.

import { Announcer } from "./announce.js";
import { Cards } from "./cards.js";
import { ChatBox } from "./chat_box.js";
import { button, el, put, setAttribute } from "./elements.js";
import { Focus } from "./focus.js";
import { Keys } from "./keys.js";
import { Lanes } from "./lanes.js";
import { Events } from "./log.js";
import { LogTools } from "./log_tools.js";
import { Missed } from "./missed.js";
import { Notice } from "./notice.js";
import { MountedPanel, panelOf } from "./panels.js";
import { Picture } from "./picture.js";
import { StatePanel } from "./state_panel.js";
import { Summary } from "./summary.js";
import { Tabs } from "./tabs.js";
import { clock, count, STATUS } from "./words.js";

/** @import { Op } from "./types" */
/** @import { Store } from "./store.js" */

export class View {
  /**
   * @param {Store} store
   * @param {HTMLElement} host
   * @param {any} manager
   */
  constructor(store, host, manager) {
    this.store = store;
    this.missed = new Missed(store, manager);
    this.frame = 0;
    this.stale = true;
    this.stopping = false;
    this.placed = false;
    this.title = el("span", "title");
    this.model = el("span", "model dim");
    this.status = el("span", "status");
    this.stop = button("Stop", "stop", () => this.stopNow());
    this.notice = new Notice(store);
    this.lanes = new Lanes(store);
    this.picture = new Picture(store);
    this.events = new Events(store, this);
    this.state = new StatePanel(store);
    this.cards = new Cards(store, this);
    this.foot = el("div", "foot");
    this.liveText = el("div", "hidden");
    setAttribute(this.liveText, "role", "status");
    const panels = store.listed.map(panelOf).filter((panel) => panel !== null);
    this.tabs = new Tabs(
      panels.map((panel) => new MountedPanel(panel, this)),
      this,
    );
    this.log = this.tabs.panels[0];
    this.tools = new LogTools(store, this);
    this.summary = new Summary(store, this);
    this.bar = el("div", "bar", this.summary.copy, this.summary.button, this.tabs.node, this.tools.node);
    this.panelsShown = !store.box; // a box shows its conversation in their place
    this.chatBox = store.box ? new ChatBox(store, this) : null;
    this.announcer = new Announcer(store);
    this.root = this.#frame();
    this.keys = new Keys(this);
    this.box = el("div", "root", this.root);
    this.focus = new Focus(this);
    this.ticking = window.setInterval(() => this.#tick(), 1000);
    host.append(this.box);
    this.reset();
  }

  #frame() {
    const head = el(
      "div",
      "head",
      this.title,
      this.model,
      this.notice.chips,
      el("span", "gap"),
      this.status,
      this.chatBox ? this.chatBox.head : this.stop,
    );
    for (const part of [head, this.bar]) part.addEventListener("keydown", (event) => event.stopPropagation());
    const panels = this.tabs.panels.map(({ node }) => node);
    const { answered, node: cards } = this.cards;
    const parts = [
      answered,
      this.summary.node,
      this.bar,
      this.lanes.node,
      ...panels,
      this.chatBox?.node ?? cards,
      this.foot,
    ];
    this.chatBox?.chat.slot.append(cards);
    const root = el("div", "view", head, this.notice.node, ...parts, this.liveText, this.announcer.node);
    if (this.store.box) {
      root.dataset.box = "";
      root.style.setProperty("--adknb-height", `${this.store.box.height}px`);
    }
    return root;
  }

  reset() {
    this.events.reset();
    this.chatBox?.reset();
    this.missed.ask();
    this.stale = true;
    this.schedule();
  }

  /** @param {Op} op */
  touch(op) {
    this.events.touch(op);
    this.announcer.touch(op);
    this.missed.touch(op);
    if (op.op === "status") this.stopping = false;
    this.chatBox?.touch(op);
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
    this.focus.restore();
    const follow = this.panelsShown ? this.events.paint() : () => {};
    this.lanes.paint();
    if (this.stale) this.paintFrame();
    else this.chatBox?.paint();
    this.stale = false;
    this.lanes.node.hidden ||= this.summary.folded || !this.panelsShown;
    this.tools.paint(this.events.words ? this.events.matches().length : null, this.summary.folded);
    follow();
  }

  paintFrame() {
    const { store } = this;
    this.title.textContent = store.title;
    this.model.textContent = store.modelName;
    this.model.hidden = !store.modelName;
    this.root.dataset.status = store.status.status;
    this.#paintStatus();
    this.notice.paint();
    this.summary.paint();
    this.tabs.paint();
    const { folded } = this.summary;
    this.foot.textContent = store.usage.text;
    this.foot.title = store.usage.title ?? "";
    const closed = folded || !this.panelsShown;
    this.foot.hidden = !store.usage.text || closed;
    const empty = !(store.rows.size || store.state.length || store.drawing);
    this.bar.hidden = empty || !this.panelsShown;
    this.bar.toggleAttribute("data-folded", folded);
    if (closed || empty) for (const panel of this.tabs.panels) panel.node.hidden = true;
    this.tabs.node.hidden ||= folded;
    this.picture.paint();
    this.state.paint();
    if (!closed && !empty) this.tabs.current.paint();
    this.cards.paint();
    this.chatBox?.paint();
    this.focus.paint();
  }

  #paintStatus() {
    const { status, box, rows, seconds } = this.store;
    const [icon, word] = STATUS[status.status] ?? ["", status.status];
    const running = status.status === "running";
    const failed = box ? 0 : [...rows.values()].filter((row) => row.kind === "call" && row.ok === false).length;
    const time = running && seconds >= 1 ? el("span", "elapsed", ` · ${clock(seconds)}`) : null;
    const failures = failed ? `, ${count(failed, "tool")} failed` : "";
    put(this.status, el("span", "icon", icon), ` ${status.text || word}${failures}`, time);
    this.root.toggleAttribute("data-failed", failed > 0);
    this.stop.hidden = !running;
    this.stop.disabled = this.stopping;
    this.stop.textContent = this.stopping ? "Stopping…" : "Stop";
  }

  /** Update the running times, once a second. */
  #tick() {
    if (this.store.status.status !== "running" || !this.box.isConnected) return;
    this.#paintStatus();
    this.events.tick();
    this.chatBox?.tick();
  }

  // Stop the run.
  stopNow() {
    this.stopping = true;
    this.store.send({ kind: "stop" });
    this.repaint();
  }

  /**
   * Show the panels of a box, or its conversation.
   *
   * @param {boolean} shown
   */
  showPanels(shown) {
    this.panelsShown = shown;
    this.root.toggleAttribute("data-panels", shown);
    this.repaint();
  }

  // Paint everything with the next animation frame.
  repaint() {
    this.stale = true;
    this.schedule();
  }

  /**
   * Go to the row of an event in the log.
   *
   * @param {string} id
   */
  showEvent(id) {
    if (!this.panelsShown) this.showPanels(true);
    this.tabs.select(this.log);
    this.events.reveal(id);
  }

  // Show everything, not only question and answer.
  unfold() {
    this.summary.chosen = false;
    this.stale = true;
    this.paint();
  }

  // Move the focus from the view to its cell.
  leave() {
    const cell = this.box.closest(".jp-Cell");
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    if (cell instanceof HTMLElement) cell.focus({ preventScroll: true });
  }

  // True if Jupyter has removed the view from the page, as when it redraws an output.
  get isOrphan() {
    return this.placed && !this.box.isConnected && !this.box.closest(".jp-OutputArea");
  }

  /** @param {HTMLElement} host */
  moveTo(host) {
    host.append(this.box);
    this.focus.moved = true;
    this.reset();
  }

  remove() {
    cancelAnimationFrame(this.frame);
    clearInterval(this.ticking);
    this.cards.stop();
    this.chatBox?.remove();
    for (const panel of this.tabs.panels) panel.closed();
    this.store.views.delete(this);
    this.box.remove();
  }
}
