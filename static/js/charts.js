// What all charts share: their library, colours of the page's theme, and being drawn when seen.

const PALETTE = [
  "light-dark(#2350c0, #8fb1ff)", "light-dark(#b3541e, #f0a877)", "light-dark(#146c37, #63cf8b)",
  "light-dark(#8a2a6f, #e49bd0)", "light-dark(#00707a, #5fd0d8)", "light-dark(#6a6a00, #d8d468)",
  "light-dark(#5b3fb8, #b9a6f5)", "light-dark(#55606e, #b4bdc9)",
];
export const CONFIG = { displayModeBar: false, responsive: true };
export const MISSING = "The chart library didn't load; the numbers are below.";

// A colour as the browser computes it: canvas and plotly.js understand neither variables nor light-dark().
export function resolve(colour) {
  const probe = document.createElement("span");
  probe.style.color = colour;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

// Give each trace the colour of its number.
export function colour(traces) {
  for (const trace of traces) {
    const value = resolve(PALETTE[trace.meta.colour]);
    if (trace.line) trace.line.color = value;
    if (trace.marker) trace.marker.color = value;
  }
}

// A figure's layout on the page's paper, in its font and colours; axes cannot be dragged.
export function themed(layout) {
  const line = resolve("var(--line)");
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, fixedrange: true };
  return {
    ...layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: resolve("var(--ink-2)") },
    xaxis: { ...layout.xaxis, ...axis },
    yaxis: { ...layout.yaxis, ...axis },
    showlegend: true,
  };
}

// Call `seen` once, when the node comes near the part of the page that is in sight.
export function whenSeen(node, seen) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    seen();
  }, { rootMargin: "200px" });
  observer.observe(node);
}

// The library, from the address that the node names; it is fetched once, by the first chart that is seen.
let library = null;
export function loadPlotly(node) {
  library ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = node.dataset.plotly;
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  });
  return library;
}
