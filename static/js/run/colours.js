// Colours of the charts in the page's theme, and the scale on which speedups are shown.
import { resolve } from "../charts.js";

const NOISE = 0.02; // a speedup this close to 1 is no difference where no interval is known
const NAMES = ["--scale-slow-2", "--scale-slow-1", "--scale-even", "--scale-fast-1", "--scale-fast-2", "--scale-fast-3", "--scale-fast-4"];
const LIMITS = [-1, 0, 0.5, 1, 2]; // log2 of the speedup at which a step of the scale ends

export function palette() {
  const named = (name) => resolve(`var(${name})`);
  return {
    scale: NAMES.map(named), ink: named("--ink"), ink2: named("--ink-2"), ink3: named("--ink-3"), line: named("--line"), strong: named("--line-strong"),
    paper: named("--paper"), accent: named("--accent"), bad: named("--bad"), warn: named("--warn"), good: named("--good"),
  };
}

// Step of the scale, 0 to 6, of a speedup with half the relative width of its interval.
export function step(speedup, spread) {
  if (!speedup) return 2;
  if (Math.abs(speedup - 1) <= Math.max(NOISE, spread || 0)) return 2;
  const log = Math.log2(speedup);
  if (log < LIMITS[0]) return 0;
  if (log < LIMITS[1]) return 1;
  return log < LIMITS[2] ? 3 : log < LIMITS[3] ? 4 : log < LIMITS[4] ? 5 : 6;
}
