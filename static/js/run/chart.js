// The best time so far over a dot for each candidate.
import { loadPlotly, whenSeen } from "../charts.js";
import { candidate, kindOf, rankedNs, searchNs, seedOf } from "./state.js";
import { duration, outcome } from "./format.js";

const MOST_DOTS = 600; // of the correct ones
const MOST_FAILURES = 150; // of each kind
const SYMBOLS = { compile: "square-open", wrong: "x-thin-open", crash: "triangle-up-open", violation: "diamond-open", slow: "triangle-right-open", unstable: "circle-open", system: "cross-thin-open", dropped: "line-ew-open" };
const WORDS = { compile: "compile error", wrong: "wrong result", crash: "crash or limit", violation: "violation", slow: "too slow", unstable: "unstable", system: "system error", dropped: "dropped" };
const even = (parts) => Array.from({ length: 9 * parts }, (_, each) => 1 + each / parts);
const STEPS = [[1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9], [1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9], ...[10, 20, 50, 100].map(even)]; // coarse to fine
const FEWEST_TICKS = 4;
const MOST_TICKS = 12;
const FAR = 8;

// Of many dots of one kind: the lowest and the highest of each bucket of neighbours.
function thin(rows, most) {
  if (rows.length <= most) return rows;
  const kept = [];
  const size = Math.ceil((rows.length * 2) / most);
  for (let from = 0; from < rows.length; from += size) {
    const bucket = rows.slice(from, from + size);
    const low = bucket.reduce((a, b) => ((searchNs(b) || 0) < (searchNs(a) || 0) ? b : a));
    const high = bucket.reduce((a, b) => ((searchNs(b) || 0) > (searchNs(a) || 0) ? b : a));
    kept.push(...(low === high ? [low] : low.number < high.number ? [low, high] : [high, low]));
  }
  return kept;
}

// Horizontal lines: [name, ns]. What was measured since tells what was unknown at the start.
export function lines(state, known) {
  const found = { ...known };
  const seed = seedOf(state);
  found["seed kernel"] = seed && searchNs(seed);
  if (state.baseline_ns) found[state.baseline_name] = state.baseline_ns;
  const sample = state.candidates.find((row) => row?.latency_ns && row.floor_fraction);
  if (sample && !found["physical limit"]) found["physical limit"] = sample.latency_ns * sample.floor_fraction;
  return Object.entries(found).filter(([, value]) => value > 0);
}

function ticks(low, high, steps) {
  const values = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high * 10; power *= 10) {
    for (const each of steps) if (each * power >= low * 0.99 && each * power <= high * 1.01) values.push(each * power);
  }
  return values;
}

// Position of the axis: the candidate's number, or seconds since the start.
function along(state, axis) {
  return axis === "time" ? (row) => ((row.measured_at || row.at) - state.startedAt) / 1000 : (row) => row.number;
}

function dots(state, x, colours) {
  const groups = new Map();
  for (const row of state.candidates) {
    if (!row) continue;
    const kind = kindOf(row);
    if (kind === "pending") continue;
    if (!groups.has(kind)) groups.set(kind, []);
    groups.get(kind).push(row);
  }
  const made = [];
  for (const [kind, all] of groups) {
    const good = kind === "correct";
    const rows = thin(all, good ? MOST_DOTS : MOST_FAILURES);
    made.push({
      type: "scatter", mode: "markers", name: good ? "correct" : WORDS[kind], showlegend: false,
      x: rows.map(x), y: good ? rows.map(searchNs) : rows.map(() => 0), yaxis: good ? "y" : "y2",
      customdata: rows.map((row) => row.number), hoverinfo: "text",
      text: rows.map((row) => `#${row.number} ${outcome(row)[2]}${row.latency_ns ? ` · ${duration(searchNs(row))}` : ""}${row.title ? `<br>${row.title.replaceAll("<", "&lt;")}` : ""}`),
      marker: good ? { size: 6, color: colours.accent, opacity: 0.55 } : { size: 7, symbol: SYMBOLS[kind], color: kind === "dropped" ? colours.ink3 : colours.bad, line: { width: 1.4, color: kind === "dropped" ? colours.ink3 : colours.bad } },
    });
  }
  return made;
}

// Ranked times are of another plan, so the line does not go through them.
function rankedDots(state, x, colours) {
  const rows = state.candidates.filter((row) => row && kindOf(row) === "correct" && rankedNs(row));
  return {
    type: "scatter", mode: "markers", name: "ranked", showlegend: false, hoverinfo: "text",
    x: rows.map(x), y: rows.map(rankedNs), customdata: rows.map((row) => row.number),
    text: rows.map((row) => `#${row.number} ranked · ${duration(rankedNs(row))}`),
    marker: { size: 8, symbol: "diamond-open", color: colours.ink2, line: { width: 1.4, color: colours.ink2 } },
  };
}

// Candidates may be measured in another order than they were written.
function stepLine(state, x, axis, colours) {
  const timed = state.candidates.filter((row) => row && kindOf(row) === "correct" && row.latency_ns && !row.noisy);
  const rows = [];
  for (const row of timed.sort((a, b) => x(a) - x(b))) if (!rows.length || searchNs(row) < searchNs(rows.at(-1))) rows.push(row);
  const xs = rows.map(x);
  const ys = rows.map(searchNs);
  if (rows.length) {
    xs.push(axis === "time" ? (state.at - state.startedAt) / 1000 : state.candidates.length);
    ys.push(ys.at(-1));
  }
  return {
    type: "scatter", mode: "lines", name: "best so far", x: xs, y: ys, showlegend: false, hoverinfo: "skip",
    line: { shape: "hv", width: 2.5, color: colours.accent },
  };
}

// A few round values and the best time. If two labels would touch, the finer one is left out.
function tickValues(range, best) {
  const [low, high] = range.map((each) => 10 ** each);
  const rounds = STEPS.map((steps) => ticks(low, high, steps)).filter((values) => values.length <= MOST_TICKS);
  const found = rounds.find((values) => values.length >= FEWEST_TICKS) || rounds.at(-1) || [low, high];
  const close = (range[1] - range[0]) * 0.06;
  const kept = best ? [best] : [];
  for (const value of [...rounds.flat().filter((each) => found.includes(each)), ...found]) {
    if (kept.every((each) => Math.abs(Math.log10(value / each)) > close)) kept.push(value);
  }
  return kept.sort((a, b) => a - b);
}

function axisOfTimes(state, horizontals) {
  const values = [...state.candidates.filter((row) => row?.latency_ns).flatMap((row) => [searchNs(row), rankedNs(row) || searchNs(row)]), ...horizontals.map(([, value]) => value)];
  if (!values.length) return { range: [3, 6], tickvals: [1e3, 1e4, 1e5, 1e6] };
  let low = Infinity;
  let high = 0;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const room = Math.max(0.03, Math.log10(high / low) * 0.08);
  const range = [Math.log10(low) - room, Math.log10(high) + room];
  return { range, tickvals: tickValues(range, state.best === null ? 0 : searchNs(candidate(state, state.best))) };
}

// Names of neighbouring lines stand apart.
function labelPlaces(horizontals, range) {
  const close = (range[1] - range[0]) * 0.07;
  const places = new Map();
  let before = -Infinity;
  let turn = 0;
  for (const [name, value] of [...horizontals].sort((a, b) => a[1] - b[1])) {
    turn = Math.log10(value) - before < close ? (turn + 1) % 3 : 0;
    places.set(name, ["end", "middle", "start"][turn]);
    before = Math.log10(value);
  }
  return places;
}

// There is no half of a candidate: few of them have a tick each.
const wholes = (axis, state) => (axis === "time" ? {} : { tickformat: ",d", ...(state.candidates.length < 8 ? { dtick: 1 } : {}) });

// A line that is far from all times would leave them little room; the figures beside the chart name it, too.
function near(horizontals, state) {
  const times = state.candidates.filter((row) => row?.latency_ns).map(searchNs);
  if (!times.length) return horizontals;
  const [low, high] = [Math.min(...times) / FAR, Math.max(...times) * FAR];
  return horizontals.filter(([, value]) => value >= low && value <= high);
}

export function figure(state, known, axis, colours, narrow) {
  const horizontals = near(lines(state, known), state);
  const x = along(state, axis);
  const y = axisOfTimes(state, horizontals);
  const base = { gridcolor: colours.line, zerolinecolor: colours.line, linecolor: colours.line, fixedrange: true };
  const places = labelPlaces(horizontals, y.range);
  const dashes = { "seed kernel": "dash", "physical limit": "dot" };
  return {
    data: [...dots(state, x, colours), rankedDots(state, x, colours), stepLine(state, x, axis, colours)],
    layout: {
      height: 340, margin: { l: 66, r: 12, t: 12, b: 44 }, hovermode: "closest", showlegend: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colours.ink2 },
      xaxis: { ...base, title: { text: axis === "time" ? "seconds since the start" : "candidate" }, rangemode: "tozero", nticks: narrow ? 5 : 10, ...wholes(axis, state), anchor: "y2" },
      yaxis: { ...base, type: "log", domain: [0.13, 1], range: y.range, tickvals: y.tickvals, ticktext: y.tickvals.map((value) => duration(value).replace(/\.0+ /, " ")), title: narrow ? undefined : { text: "time per call, log scale" } },
      yaxis2: { ...base, domain: [0, 0.09], range: [-1, 1], tickvals: [0], ticktext: ["no time"], showgrid: false, zeroline: false },
      shapes: horizontals.map(([name, value]) => ({
        type: "line", xref: "paper", x0: 0, x1: 1, y0: value, y1: value, yref: "y",
        line: { width: 1.2, color: colours.ink3, dash: dashes[name] || "dashdot" },
        label: { text: `${name} ${duration(value)}`, textposition: places.get(name), font: { size: 13, color: colours.ink2 }, yanchor: "bottom" },
      })),
    },
  };
}

export class BestChart {
  // `ready` is called once, when the chart has been seen and can be drawn, or is known to fail.
  constructor(node, known, open, ready) {
    this.node = node;
    this.known = known;
    this.open = open;
    this.state = "unseen";
    whenSeen(node, () => loadPlotly(node).then(() => "loaded", () => "missing").then((state) => {
      this.state = state;
      ready();
    }));
  }

  // Plotly is slow: with many dots, it draws less often than the rest.
  isDue() {
    return performance.now() - (this.drawnAt || -Infinity) > 6 * (this.cost || 0);
  }

  async draw(state, axis, colours) {
    if (this.state === "unseen") return;
    if (this.state === "missing") {
      this.node.textContent = "The chart library didn't load; the numbers are in the table below.";
      return;
    }
    const from = performance.now();
    const drawn = figure(state, this.known, axis, colours, this.node.clientWidth < 600);
    await Plotly.react(this.node, drawn.data, drawn.layout, { displayModeBar: false, responsive: true });
    this.drawnAt = performance.now();
    this.cost = this.drawnAt - from;
    if (!this.listens) {
      this.listens = true;
      this.node.on("plotly_click", (event) => {
        const number = event.points[0]?.customdata;
        if (number) this.open(number);
      });
    }
  }
}

export function bestWords(state) {
  const best = state.best === null ? null : candidate(state, state.best);
  if (!best) return "no correct candidate yet";
  const ranked = rankedNs(best) ? `; ranked (◇): ${duration(rankedNs(best))}` : "";
  return `best: candidate ${best.number} with ${duration(searchNs(best))} in the search${ranked}`;
}
