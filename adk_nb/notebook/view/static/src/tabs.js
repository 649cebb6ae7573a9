// The tabs of the panels, by the tabs pattern of the ARIA Authoring Practices Guide. Panels without content have no tab.

import { el, newId, setAttribute, setLabel } from "./elements.js";

/** @import { View } from "./view.js" */
/** @import { MountedPanel } from "./panels.js" */

export class Tabs {
  /**
   * @param {MountedPanel[]} panels
   * @param {View} view
   */
  constructor(panels, view) {
    this.panels = panels;
    this.view = view;
    this.current = panels[0];
    this.node = el("div", "tabs");
    setAttribute(this.node, "role", "tablist");
    setLabel(this.node, "Panels");
    this.tabs = new Map(panels.map((panel) => [panel, this.tab(panel)]));
    this.node.append(...this.tabs.values());
    this.node.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** @param {MountedPanel} panel */
  tab(panel) {
    const tab = el("button", "tab", panel.title);
    tab.type = "button";
    tab.id = newId();
    setAttribute(tab, "role", "tab");
    tab.addEventListener("click", () => this.select(panel));
    panel.node.id = newId();
    setAttribute(panel.node, "role", "tabpanel");
    setAttribute(panel.node, "aria-labelledby", tab.id);
    setAttribute(tab, "aria-controls", panel.node.id);
    return tab;
  }

  /**
   * Switch to a panel, which then requests its data.
   *
   * @param {MountedPanel} panel
   * @param {boolean} [focus]
   */
  select(panel, focus = false) {
    if (this.current !== panel) this.current.closed();
    this.current = panel;
    this.paint();
    panel.opened();
    panel.paint();
    this.view.schedule(); // the tools beside the tabs depend on the panel
    if (focus) this.tabs.get(panel)?.focus();
  }

  paint() {
    const shown = this.panels.filter((panel) => panel.exists);
    if (!shown.includes(this.current)) this.current = this.panels[0];
    for (const [panel, tab] of this.tabs) {
      tab.hidden = !shown.includes(panel);
      setAttribute(tab, "aria-selected", String(panel === this.current));
      tab.tabIndex = panel === this.current ? 0 : -1;
      panel.node.hidden = panel !== this.current;
    }
    this.node.hidden = shown.length < 2;
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const shown = this.panels.filter((panel) => this.tabs.get(panel)?.hidden === false);
    const at = shown.indexOf(this.current);
    /** @type {Record<string, number>} */
    const moves = { ArrowLeft: at - 1 + shown.length, ArrowRight: at + 1, Home: 0, End: shown.length - 1 };
    if (event.key in moves) this.select(shown[moves[event.key] % shown.length], true);
    else if (event.key === "Escape") this.view.leave();
    else if (event.key !== "Enter" && event.key !== " ") return;
    if (event.key !== "Enter" && event.key !== " ") event.preventDefault(); // Enter and space press the tab
    event.stopPropagation();
  }
}
