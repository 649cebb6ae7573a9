// Keys that lead from anywhere in the view to a part of it. None of them answers a card.

class Keys {
  constructor(view) {
    this.view = view;
    view.root.addEventListener("keydown", (event) => this.onKey(event), true);
    view.root.setAttribute("aria-keyshortcuts", "/ s w Escape");
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select, [contenteditable], .adknb-form")) return;
    if (!this.does(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  does(key) {
    const { tabs, tools, panes } = this.view;
    if (key === "Escape") {
      this.view.leave();
      return true;
    }
    const label = { s: "State", w: "Waterfall" }[key];
    const panel = key === "/" ? panes : tabs.panels.find((each) => each.label === label && each.has());
    if (!panel || !this.view.store.rows.size) return false;
    this.view.unfold();
    tabs.select(panel, key !== "/");
    this.view.paint();
    if (key === "/") tools.filter.focus();
    return true;
  }
}
