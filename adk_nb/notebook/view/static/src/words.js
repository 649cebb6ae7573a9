// Labels and icons of the view, and numbers and values as text.

/** @type {Record<string, [string, string]>} */
export const STATUS = {
  idle: ["○", "idle"],
  running: ["●", "running"],
  pending: ["⚠", "waiting for you"],
  done: ["✓", "done"],
  error: ["✗", "error"],
  cancelled: ["■", "stopped"],
};
/** @type {Record<string, [string, string]>} */
export const ANSWERED = {
  approved: ["✓", "You approved"],
  edited: ["✎", "You approved with changes"],
  rejected: ["✗", "You rejected"],
  answered: ["✓", "You answered"],
  reasked: ["↻", "asked again"],
  given: ["✓", "You answered"],
  refused: ["✗", "You refused"],
  superseded: ["–", "no longer asked"],
  retried: ["↻", "Retried below"],
  resent: ["✓", "Sent below"],
  dropped: ["✓", "taken back"],
  over: ["–", "the conversation went on"],
  stale: ["–", "stale"],
};
// States of nodes and lanes: icon and label.
/** @type {Record<string, [string, string]>} */
export const STATES = {
  now: ["●", "working"],
  waits: ["⚠", "waiting for you"],
  was: ["✓", "done"],
  failed: ["✗", "failed"],
  stopped: ["■", "stopped"],
};
export const GONE =
  "What waits in a session that is kept in a file is asked again by %confirm; else run the cell again.";
/** @type {Record<string, string>} */
export const MARKS = { "+": "added", "~": "changed", "-": "removed" };

/** @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/**
 * A running time in whole seconds.
 *
 * @param {number} seconds
 */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/**
 * @param {number} number
 * @param {string} word
 */
export const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return count(bytes, "byte");
  const [number, unit] = bytes < 1e6 ? [bytes / 1000, "kB"] : [bytes / 1e6, "MB"];
  return `${number.toFixed(number % 1 ? 1 : 0)} ${unit}`;
}

/** @param {unknown} value */
export function shown(value) {
  return value === null || value === undefined ? "nothing" : withEscapes(JSON.stringify(value));
}

/** @param {string} text */
export const inAscii = (text) => text.replace(/[^ -~]/g, escaped); // a Cyrillic letter may look like a Latin one
/** @param {string} unit */
const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

// As plain_text.with_escapes in Python: invisible characters as \u202e; tabs, line ends and emoji stay.
const UNSEEN =
  /(\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?(?:\u200d\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?)*)|[^\P{C}\t\n]|[^\P{Z} ]|\p{Default_Ignorable_Code_Point}|\u2800/gu;

/** @param {string} text */
export function withEscapes(text) {
  return text.replace(UNSEEN, (found, emoji) => emoji ?? found.split("").map(escaped).join(""));
}

/**
 * @param {any} one
 * @param {any} other
 */
export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/**
 * A value of the state, given as JSON; text of several lines is displayed as lines.
 *
 * @param {string} json
 */
export function valueText(json) {
  if (!json.startsWith('"') || !json.includes("\\n")) return json;
  try {
    return withEscapes(JSON.parse(json));
  } catch {
    return json.replace(/\\n/g, "\n"); // it was shortened
  }
}
