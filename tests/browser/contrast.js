// The text of the live view whose contrast with what lies behind it is under 4.5:1 (WCAG 2.2, 1.4.3), as it is painted.
const canvas = document.createElement("canvas");
canvas.width = canvas.height = 1;
const brush = canvas.getContext("2d", { willReadFrequently: true });

function painted(...colours) {
  brush.clearRect(0, 0, 1, 1);
  for (const colour of ["#fff", ...colours]) {
    brush.fillStyle = colour;
    brush.fillRect(0, 0, 1, 1);
  }
  return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

function luminance(rgb) {
  const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const root = document.querySelector(".adknb-root");
const poor = [];
const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.offsetParent || element.closest(".adknb-hidden")) continue;
  const behind = [];
  for (let at = element; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
  const back = painted(...behind);
  const [high, low] = [luminance(painted(...behind, getComputedStyle(element).color)), luminance(back)].sort((a, b) => b - a);
  const ratio = (high + 0.05) / (low + 0.05);
  if (ratio < 4.5) poor.push([walker.currentNode.data.trim().slice(0, 40), element.className, ratio.toFixed(2)]);
}
return poor;
