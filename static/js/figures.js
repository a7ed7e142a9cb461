// Draws the figures that a page holds as JSON, in the page's colours, again when the theme changes.
(() => {
  "use strict";

  const PALETTE = [
    "light-dark(#2350c0, #8fb1ff)", "light-dark(#b3541e, #f0a877)", "light-dark(#146c37, #63cf8b)",
    "light-dark(#8a2a6f, #e49bd0)", "light-dark(#00707a, #5fd0d8)", "light-dark(#875400, #efb955)",
    "light-dark(#5b3fb8, #b9a6f5)", "light-dark(#55606e, #b4bdc9)",
  ];

  // A colour as the browser computes it: plotly.js understands neither variables nor light-dark().
  function resolve(colour) {
    const probe = document.createElement("span");
    probe.style.color = colour;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }

  function draw(chart) {
    if (!window.Plotly) {
      chart.textContent = "The chart's library did not load; the numbers are below.";
      return;
    }
    const figure = JSON.parse(document.getElementById(chart.dataset.figure).textContent);
    const line = resolve("var(--line)");
    for (const trace of figure.data) {
      const colour = resolve(PALETTE[trace.meta.colour]);
      if (trace.line) trace.line.color = colour;
      if (trace.marker) trace.marker.color = colour;
    }
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, fixedrange: true };
    const layout = {
      ...figure.layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: resolve("var(--ink-2)") },
      xaxis: { ...figure.layout.xaxis, ...axis },
      yaxis: { ...figure.layout.yaxis, ...axis },
      showlegend: true,
    };
    Plotly.react(chart, figure.data, layout, { displayModeBar: false, responsive: true });
  }

  const drawAll = () => document.querySelectorAll("[data-figure]").forEach(draw);
  drawAll();
  document.addEventListener("kbench:theme", drawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
