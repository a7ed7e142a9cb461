// Draws the fast_p curves in the page's colours, again whenever the board or the theme changes.
import { CONFIG, MISSING, colour, draws, themed } from "./charts.js";

function loadPlotly(address) {
  if (window.Plotly) return Promise.resolve();
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  });
}

async function draw() {
  const chart = document.getElementById("fast-p-chart");
  const data = document.getElementById("fast-p-figure");
  if (!chart || !data) return;
  try {
    await loadPlotly(chart.dataset.plotly);
  } catch {
    chart.textContent = MISSING;
    return;
  }
  const figure = JSON.parse(data.textContent);
  colour(figure.data);
  if (chart.clientWidth < 600) {
    for (const name of ["tickvals", "ticktext"]) {
      figure.layout.xaxis[name] = figure.layout.xaxis[name].filter((_, index) => index % 2 === 0);
    }
  }
  await Plotly.react(chart, figure.data, themed(figure.layout), CONFIG);
}

draws(draw);
document.addEventListener("htmx:afterSettle", draw);
