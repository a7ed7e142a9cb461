// A run's live page: joins the feed to the views.
import { candidate, emptyState, isOver, put, searchNs, seedOf, spent, verifiersOf } from "./state.js";
import { BestChart, bestWords } from "./chart.js";
import { Drawer } from "./drawer.js";
import { Feed, Replay } from "./events.js";
import { Genealogy } from "./genealogy.js";
import * as panels from "./panels.js";
import { Stream } from "./stream.js";
import { palette } from "./colours.js";

const DRAW_MS = 250;
const HEAD_MS = 15000;

const config = JSON.parse(document.getElementById("run-config").textContent);
const byId = (id) => document.getElementById(id);
const state = emptyState(config);
const progress = new Map();
let colours = palette();
let drawing = false;
let timer = 0;
let dirty = false;
let caughtUp = false; // until then the page keeps the figures that the site has drawn
let cost = 0; // milliseconds that the last drawing took

const drawer = new Drawer(byId("drawer"), config.urls.candidate, (by) => stream.move(by));
const open = (number) => {
  stream.choose(number);
  if (genealogy.state) genealogy.choose(number);
  drawer.open(number);
};
const stream = new Stream(byId("stream"), open);
const genealogy = new Genealogy(byId("genealogy-frame"), byId("genealogy-words"), open);
const chart = new BestChart(byId("best-chart"), config.lines, open, () => soon());
const replay = new Replay(byId("replay"), config, state, () => soon());

const shown = () => replay.state || state;

// The time that speedups are over: the seed kernel's, or the best baseline's where there is no seed.
function reference(view) {
  const seed = seedOf(view);
  const overSeed = seed?.latency_ns && byId("over").value !== "baseline";
  return overSeed ? searchNs(seed) : view.baseline_ns;
}

// Speedups are over the baseline as long as the seed kernel has no time.
function scaleWords(view) {
  const overBaseline = `speedup over the ${view.baseline_name || "best baseline"}`;
  if (byId("over").value === "baseline") return overBaseline;
  const timed = !seedOf(view)?.latency_ns && view.best !== null;
  return timed ? `${overBaseline}: the seed kernel has no time` : "speedup over the seed kernel";
}

async function draw() {
  timer = 0;
  if (drawing || document.hidden || !(caughtUp || replay.state)) return;
  drawing = true;
  dirty = false;
  const from = performance.now();
  const view = shown();
  const over = reference(view);
  const now = replay.state ? view.at : Date.now();
  panels.figures(view);
  panels.meters(view, now);
  panels.outcomes(view);
  panels.models(view);
  panels.verifiers(view);
  panels.islands(view, config.strategy, over, open);
  panels.calls(view, replay.state ? new Map() : progress, now);
  panels.log(view, config.urls.call);
  stream.update(view, over);
  genealogy.draw(view, colours, over);
  byId("best-words").textContent = bestWords(view);
  byId("scale-words").textContent = scaleWords(view);
  byId("feed-state").hidden = isOver(state);
  cost = performance.now() - from;
  if (chart.isDue()) await chart.draw(view, byId("axis").value, colours);
  else later();
  drawing = false;
  document.body.dataset.drawn = view.seq;
  if (dirty) soon();
}

// Draw when it is due; what takes long is done less often.
function soon() {
  dirty = true;
  if (!timer && !drawing && !document.hidden) timer = setTimeout(draw, Math.max(DRAW_MS, 3 * cost));
}

// The chart's turn comes, also when no further event does.
let laterTimer = 0;
function later() {
  clearTimeout(laterTimer);
  laterTimer = setTimeout(soon, 1000);
}

async function refreshHead() {
  try {
    const answer = await fetch(config.urls.head, { headers: { "X-Requested-With": "fetch" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("run-head");
    await kbench.released(byId("run-head"));
    const old = byId("run-head");
    if (old.contains(document.activeElement) && old.querySelector("details[open]")) return;
    for (const part of old.querySelectorAll("details[open]")) fresh.querySelector(`#${part.id}`)?.setAttribute("open", "");
    old.replaceWith(fresh);
    if (old.dataset.words !== fresh.dataset.words) byId("announce").textContent = fresh.dataset.words;
  } catch {
    // The feed says when the site does not answer.
  }
}

// Pause, resume or stop without leaving the page: the site may be away.
async function control(form) {
  const button = form.querySelector("button");
  button.disabled = true;
  let refusal = "";
  try {
    const answer = await fetch(form.action, { method: "POST", body: new FormData(form) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok) refusal = `The site refused the request (status ${answer.status}). Reload the page and try again.`;
    else if (!page.getElementById("run-head")) location.assign(answer.url); // to sign in
    else refusal = page.querySelector(".messages .bad")?.textContent || "";
    document.activeElement.blur(); // or the head would not be replaced
    await refreshHead();
  } catch {
    refusal = "The site isn't responding, so nothing was changed. Try again in a moment.";
  }
  button.disabled = false;
  byId("control-words").textContent = refusal;
  byId("control-words").hidden = !refusal;
}

let headTimer = 0;
function headSoon() {
  clearTimeout(headTimer);
  headTimer = setTimeout(refreshHead, 150);
}

function take(change) {
  const best = state.best;
  put(state, change, Date.now());
  if (caughtUp) {
    if (change.lines.length || state.best !== best || state.status !== byId("run-head").dataset.status) headSoon();
    for (const row of change.candidates) drawer.refresh(row.number);
  }
  replay.grow();
  soon();
}

const feed = new Feed(config, {
  change: take,
  caughtUp: () => {
    if (caughtUp) return;
    caughtUp = true;
    soon();
  },
  progress: (payload) => {
    progress.set(payload.call || payload.number, payload);
    soon();
  },
  state: (name, words) => {
    const sign = byId("feed-state");
    sign.dataset.state = name;
    sign.textContent = words;
  },
});

function redraw() {
  colours = palette();
  soon();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("#run-head a[data-candidate]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(Number(link.dataset.candidate));
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("#run-head form[data-control]")) return;
  event.preventDefault();
  control(event.target);
});
byId("over").addEventListener("change", soon);
byId("axis").addEventListener("change", soon);
byId("island-choice").addEventListener("change", soon);
document.addEventListener("kbench:theme", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea, [role=listbox], canvas") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "j" || event.key === "k") {
    const number = stream.move(event.key === "j" ? 1 : -1);
    if (number && drawer.number) drawer.open(number);
  } else if (event.key === "Enter" && stream.chosen && event.target === document.body) open(stream.chosen);
});
setInterval(() => {
  if (document.hidden || replay.state || !caughtUp) return;
  if (shown().status === "RUNNING") panels.meters(state, Date.now());
}, 1000);
setInterval(() => {
  if (!document.hidden && state.status === "RUNNING") refreshHead();
}, HEAD_MS);

const wanted = Number(/^#candidate-(\d+)$/.exec(location.hash)?.[1] || 0);
if (wanted) drawer.open(wanted);
byId("loading").textContent = "loading what has happened so far";
feed.start().catch(() => feed.startPolling()).finally(() => {
  byId("loading").textContent = "";
  if (!feed.socket) feed.connect();
  if (wanted) stream.choose(wanted);
});
replay.grow();
soon();
window.kbenchRun = { state, replay, genealogy, spent: () => spent(state), verifiers: () => Object.fromEntries(verifiersOf(state)), drawCost: () => cost }; // for tests
