// Draws the fast_p curves in the page's colours, again whenever the board or the theme changes.
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
      chart.textContent = "The chart's library did not load; the numbers are below.";
      return;
    }
    const figure = JSON.parse(data.textContent);
    const ink = resolve("var(--ink-2)");
    const line = resolve("var(--line)");
    for (const trace of figure.data) trace.line.color = resolve(PALETTE[trace.meta.colour]);
    if (chart.clientWidth < 600) {
      for (const name of ["tickvals", "ticktext"]) {
        figure.layout.xaxis[name] = figure.layout.xaxis[name].filter((_, index) => index % 2 === 0);
      }
    }
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, fixedrange: true };
    const layout = {
      ...figure.layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
      xaxis: { ...figure.layout.xaxis, ...axis },
      yaxis: { ...figure.layout.yaxis, ...axis },
      showlegend: true,
    };
    await Plotly.react(chart, figure.data, layout, { displayModeBar: false, responsive: true });
  }

  draw();
  document.addEventListener("kbench:theme", draw);
  document.addEventListener("htmx:afterSettle", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
