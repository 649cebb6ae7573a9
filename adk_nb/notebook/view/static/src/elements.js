// What the other parts are made of: elements, safe markup, drawings. Only row.html is markup; all else goes in as text.

const FOLD_ABOVE = 480; // pixels; what is cut shows 420 of them (.adknb-clip), so that a fold saves some lines
// Each view has a module of its own: a count alone would give the elements of two views the same ids.
const mine = `adknb-${Math.random().toString(36).slice(2)}`;
let ids = 0;

export function newId() {
  ids += 1;
  return `${mine}-${ids}`;
}

export function el(tag, name, ...children) {
  const node = document.createElement(tag);
  if (name)
    node.className = name
      .split(" ")
      .map((part) => `adknb-${part}`)
      .join(" ");
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

export function button(label, name, onClick) {
  const node = el("button", `button ${name}`, label);
  node.type = "button";
  node.addEventListener("click", onClick);
  return node;
}

export function put(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

// Content that is cut at a height, with a button for the rest; what is short has none.
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
    more.setAttribute("aria-expanded", String(open));
  };
  more.hidden = true;
  more.addEventListener("keydown", (event) => event.stopPropagation()); // Enter is the button's, not the notebook's
  new ResizeObserver(paint).observe(inner);
  return el("div", "", clip, more);
}

// A button that puts text on the clipboard, and says so for a moment.
export function copyButton(label, text) {
  const node = button(label, "small", async () => {
    try {
      await navigator.clipboard.writeText(text());
      node.textContent = "Copied";
    } catch {
      node.textContent = "The page may not copy";
    }
    setTimeout(() => (node.textContent = label), 1500);
  });
  return node;
}

export function download(name, type, content) {
  const link = el("a", "");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
