// Words and signs of the view, and figures and values as text.

export const STATUS = {
  idle: ["○", "idle"],
  running: ["●", "running"],
  pending: ["⚠", "waiting"],
  done: ["✓", "done"],
  error: ["✗", "error"],
  cancelled: ["■", "stopped"],
};
export const ANSWERED = {
  approved: ["✓", "approved"],
  edited: ["✎", "approved with changes"],
  rejected: ["✗", "rejected"],
  answered: ["✓", "You answered"],
  reasked: ["↻", "asked anew"],
  given: ["✓", "answered"],
  refused: ["✗", "refused"],
  superseded: ["–", "no longer asked"],
  retried: ["↻", "said again"],
  dropped: ["✓", "taken back"],
  over: ["–", "the conversation went on"],
  stale: ["–", "stale"],
};
// How those that work stand, in a line and in a drawing.
export const STANDS = {
  now: ["●", "works"],
  waits: ["⚠", "waits"],
  was: ["✓", "done"],
  failed: ["✗", "failed"],
  stopped: ["■", "stopped"],
};
export const GONE =
  "What waits in a session that is kept in a file is asked again by %confirm; else run the cell again.";
export const MARKS = { "+": "added", "~": "changed", "-": "removed" };

export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export function shown(value) {
  return value === null || value === undefined ? "nothing" : withEscapes(JSON.stringify(value));
}

export const inAscii = (text) => text.replace(/[^ -~]/g, escaped); // a Cyrillic letter may look like a Latin one
const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

// The twin of plain_text.with_escapes: what cannot be seen, as \u202e; tabs, line ends and emoji stay.
const UNSEEN =
  /(\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?(?:\u200d\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?)*)|[^\P{C}\t\n]|[^\P{Z} ]|\p{Default_Ignorable_Code_Point}|\u2800/gu;

export function withEscapes(text) {
  return text.replace(UNSEEN, (found, emoji) => emoji ?? found.split("").map(escaped).join(""));
}

export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
