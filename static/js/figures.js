// Draws the figures that a page holds as JSON, once they are seen, in the page's colours.
import { CONFIG, MISSING, colour, loadPlotly, themed, whenSeen } from "./charts.js";

const NARROW_PX = 600;
const seen = new Set();

// On a phone every second tick of an axis has its label.
function fewerTicks(axis) {
  for (const name of ["tickvals", "ticktext"]) {
    if (axis?.[name]) axis[name] = axis[name].filter((_, index) => index % 2 === 0);
  }
}

async function draw(chart) {
  try {
    await loadPlotly(chart);
  } catch {
    chart.textContent = MISSING;
    return;
  }
  if (!chart.isConnected) return; // replaced in the meantime
  const figure = JSON.parse(document.getElementById(chart.dataset.figure).textContent);
  colour(figure.data);
  if (chart.clientWidth < NARROW_PX) fewerTicks(figure.layout.xaxis);
  await Plotly.react(chart, figure.data, themed(figure.layout), CONFIG);
}

// Charts that are new on the page wait to be seen.
const watched = new WeakSet();
function watch() {
  for (const chart of document.querySelectorAll("[data-figure]")) {
    if (watched.has(chart)) continue;
    watched.add(chart);
    whenSeen(chart, () => {
      seen.add(chart);
      draw(chart);
    });
  }
}

function redraw() {
  for (const chart of seen) {
    if (chart.isConnected) draw(chart);
    else seen.delete(chart);
  }
}

watch();
document.addEventListener("htmx:afterSettle", watch);
document.addEventListener("kbench:theme", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
