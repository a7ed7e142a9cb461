// Numbers with units, as the pages that the server renders show them.

const TIMES = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

export function significant(value, digits = 3) {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
  return value.toFixed(Math.max(digits - 1 - magnitude, 0));
}

export function duration(nanoseconds) {
  if (!nanoseconds) return "–";
  let [factor, unit] = TIMES[0];
  for (const [step, name] of TIMES) if (nanoseconds >= step * 0.9995) [factor, unit] = [step, name];
  return `${significant(nanoseconds / factor)} ${unit}`;
}

export const ratio = (value) => (value ? `${significant(value)}×` : "–");
export const percent = (share) => (share === null || share === undefined ? "–" : `${share > 0 && share < 1 ? significant(share * 100, 2) : Math.round(share * 100)} %`);
export const usd = (value) => (value >= 1 || !value ? `$${value.toFixed(2)}` : `$${significant(value, 2)}`);
export const cost = (paid) => (paid === null ? "price unknown" : usd(paid));
export const whole = (value) => Math.round(value).toLocaleString("en-US");

export function period(seconds) {
  if (seconds < 100) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min`;
}

export const clock = (milliseconds) => new Date(milliseconds).toISOString().slice(11, 19);

export const VERDICTS = {
  CORRECT: ["good", "✓", "Correct"], WRONG_SHAPE: ["bad", "✗", "Wrong shape"], WRONG_DTYPE: ["bad", "✗", "Wrong dtype"],
  WRONG_RESULT: ["bad", "✗", "Wrong result"], COMPILE_ERROR: ["bad", "✗", "Compile error"], RUNTIME_ERROR: ["bad", "✗", "Runtime error"],
  TIME_LIMIT: ["bad", "✗", "Time limit"], MEMORY_LIMIT: ["bad", "✗", "Memory limit"], VIOLATION: ["bad", "✗", "Violation"],
  TOO_SLOW: ["bad", "✗", "Too slow"], UNSTABLE: ["warn", "!", "Unstable"], SYSTEM_ERROR: ["warn", "!", "System error"], DROPPED: ["", "–", "Dropped"],
  REPLACED: ["", "–", "Replaced by a repaired version"],
};
const STATES = { drafted: ["", "○", "Waiting"], measuring: ["accent", "●", "Measuring"], dropped: VERDICTS.DROPPED };

// [class, sign, words] of a candidate's outcome; `over`: the run has ended, so nothing waits.
export function outcome(row, over = false) {
  if (over && (row.state === "drafted" || row.state === "measuring")) return ["", "○", row.begun ? "Canceled" : "Not measured"];
  if (row.replaced) return ["", "–", "Replaced"];
  return row.state === "measured" ? VERDICTS[row.verdict] || ["", "?", row.verdict] : STATES[row.state];
}

// A new element; text is never markup.
export function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}
