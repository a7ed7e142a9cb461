// The workbench's panes: side by side with widths that are dragged or set by keys, and kept; on a narrow screen one at a time.
const NAME = "kbench-panes";
const STEP = 24; // px
const LEAST = 220;
const MIDDLE = 440; // what the editor keeps
const bench = document.getElementById("bench");
const splitters = [...bench.querySelectorAll(".splitter")];
const isWide = window.matchMedia("(min-width: 80rem) and (min-height: 36rem)");

function read() {
  try {
    const found = JSON.parse(localStorage.getItem(NAME));
    return found && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

const widths = read();
const paneOf = (splitter) => document.getElementById(splitter.getAttribute("aria-controls"));
const sign = (splitter) => (splitter.dataset.side === "task" ? 1 : -1); // which way makes the pane wider

function keep() {
  try {
    localStorage.setItem(NAME, JSON.stringify(widths));
  } catch {
    // Storage is blocked: the widths last as long as the page.
  }
}

// The widest that leaves the editor its part beside the other pane.
function most(splitter) {
  const others = splitters.filter((each) => each !== splitter).reduce((sum, each) => sum + paneOf(each).offsetWidth, 0);
  return Math.max(bench.clientWidth - others - MIDDLE, LEAST);
}

function show(splitter) {
  splitter.setAttribute("aria-valuemin", LEAST);
  splitter.setAttribute("aria-valuemax", most(splitter));
  splitter.setAttribute("aria-valuenow", paneOf(splitter).offsetWidth);
}

function apply(splitter, width) {
  const { side } = splitter.dataset;
  if (width) widths[side] = Math.round(Math.min(Math.max(width, LEAST), most(splitter)));
  else delete widths[side];
  if (width) bench.style.setProperty(`--${side}-width`, `${widths[side]}px`);
  else bench.style.removeProperty(`--${side}-width`);
  splitters.forEach(show);
}

function drag(splitter, event) {
  event.preventDefault();
  splitter.focus();
  splitter.setPointerCapture(event.pointerId);
  const start = { x: event.clientX, width: paneOf(splitter).offsetWidth };
  const ended = new AbortController();
  const move = (moved) => apply(splitter, start.width + sign(splitter) * (moved.clientX - start.x));
  splitter.addEventListener("pointermove", move, { signal: ended.signal });
  splitter.addEventListener("lostpointercapture", () => { ended.abort(); keep(); }, { signal: ended.signal });
}

function press(splitter, event) {
  const width = paneOf(splitter).offsetWidth;
  const wanted = {
    ArrowLeft: width - sign(splitter) * STEP, ArrowRight: width + sign(splitter) * STEP,
    Home: LEAST, End: most(splitter), Enter: 0,
  }[event.key];
  if (wanted === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  apply(splitter, wanted);
  keep();
}

// The task gives its place to the editor.
function fold() {
  bench.classList.toggle("folded", Boolean(widths.folded));
  splitters.forEach(show);
}

// Kept widths may be of a larger window: the verdict gives way first.
function fit() {
  if (!isWide.matches) return;
  for (const splitter of splitters) if (widths[splitter.dataset.side]) apply(splitter, widths[splitter.dataset.side]);
  splitters.forEach(show);
}

export const sideBySide = () => isWide.matches;

// Brings a pane into sight where there is room for one alone.
export function reveal(pane) {
  document.querySelector(`.bench-tabs [value="${pane}"]`).checked = true;
}

for (const splitter of splitters) {
  splitter.hidden = false;
  splitter.addEventListener("pointerdown", (event) => drag(splitter, event));
  splitter.addEventListener("dblclick", () => { apply(splitter, 0); keep(); });
  splitter.addEventListener("keydown", (event) => press(splitter, event));
}
document.addEventListener("keydown", (event) => {
  const isAsked = event.key.toLowerCase() === "b" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
  if (!isAsked || !isWide.matches || event.target.closest("dialog")) return;
  event.preventDefault();
  widths.folded = !widths.folded;
  fold();
  keep();
});
isWide.addEventListener("change", fit);
window.addEventListener("resize", fit);
fold();
fit();
