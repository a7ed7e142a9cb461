// Draws the figures that a page holds as JSON, in the page's colours, again when the theme changes.
import { CONFIG, MISSING, colour, draws, themed } from "./charts.js";

function draw(chart) {
  if (!window.Plotly) {
    chart.textContent = MISSING;
    return;
  }
  const figure = JSON.parse(document.getElementById(chart.dataset.figure).textContent);
  colour(figure.data);
  Plotly.react(chart, figure.data, themed(figure.layout), CONFIG);
}

draws(() => document.querySelectorAll("[data-figure]").forEach(draw));
