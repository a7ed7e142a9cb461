// The genealogy on a canvas: a mark for each candidate, a line to each parent. It draws only what
// is in view.
import { candidate, isOver, kindOf, searchNs, speedupOf } from "./state.js";
import { step } from "./colours.js";
import { duration, outcome, ratio } from "./format.js";

const RADIUS = 6;
const HEIGHT = 340; // at most
const LEAST = 90;

const SHAPES = {
  compile: (pen, x, y, r) => pen.rect(x - r + 1, y - r + 1, 2 * r - 2, 2 * r - 2),
  wrong: (pen, x, y, r) => cross(pen, x, y, r - 1),
  crash: (pen, x, y, r) => polygon(pen, [[x, y - r], [x + r, y + r - 1], [x - r, y + r - 1]]),
  violation: (pen, x, y, r) => polygon(pen, [[x, y - r], [x + r, y], [x, y + r], [x - r, y]]),
  slow: (pen, x, y, r) => polygon(pen, [[x - r + 1, y - r], [x + r, y], [x - r + 1, y + r]]),
  unstable: (pen, x, y, r) => pen.arc(x, y, r - 1, 0, 7),
  system: (pen, x, y, r) => { pen.moveTo(x - r, y); pen.lineTo(x + r, y); pen.moveTo(x, y - r); pen.lineTo(x, y + r); },
  dropped: (pen, x, y, r) => { pen.moveTo(x - r + 1, y); pen.lineTo(x + r - 1, y); },
};

function cross(pen, x, y, r) {
  pen.moveTo(x - r, y - r);
  pen.lineTo(x + r, y + r);
  pen.moveTo(x + r, y - r);
  pen.lineTo(x - r, y + r);
}

function polygon(pen, points) {
  points.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
}

export class Genealogy {
  // frame: the scrolling box; it holds a canvas, which stays in view, and a spacer that gives the width.
  constructor(frame, words, open) {
    this.frame = frame;
    this.canvas = frame.querySelector("canvas");
    this.spacer = frame.querySelector(".spacer");
    this.words = words;
    this.open = open;
    this.chosen = 0;
    this.layout = { nodes: [], heads: [], width: 0, height: 0 };
    frame.addEventListener("scroll", () => this.paint(), { passive: true });
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.paint()).observe(frame);
  }

  draw(state, colours, reference) {
    const atEnd = this.frame.scrollLeft + this.frame.clientWidth >= this.layout.width - 30;
    this.state = state;
    this.colours = colours;
    this.reference = reference;
    this.layout = place(state.candidates, HEIGHT);
    this.spacer.style.width = `${this.layout.width}px`;
    if (atEnd) this.frame.scrollLeft = this.layout.width;
    this.paint();
  }

  paint() {
    if (!this.state) return;
    const scale = window.devicePixelRatio || 1;
    const width = this.frame.clientWidth;
    if (!width) return;
    this.canvas.width = width * scale;
    const height = Math.max(LEAST, this.layout.height);
    this.canvas.height = height * scale;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    const left = this.frame.scrollLeft;
    pen.setTransform(scale, 0, 0, scale, -left * scale, 0);
    const seen = (node) => node && node.x > left - 30 && node.x < left + width + 30;
    this.paintHeads(pen, left, width);
    this.paintEdges(pen, seen);
    this.layout.nodes.forEach((node, number) => { if (seen(node)) this.paintNode(pen, node, candidate(this.state, number)); });
  }

  paintHeads(pen, left, width) {
    pen.fillStyle = this.colours.ink3;
    pen.strokeStyle = this.colours.line;
    pen.lineWidth = 1;
    pen.font = `13px ${getComputedStyle(document.body).fontFamily}`;
    for (const head of this.layout.heads) {
      if (head.x > left + width || head.x + head.width < left) continue;
      pen.fillText(String(head.generation), head.x + 4, 14);
      pen.beginPath();
      pen.moveTo(head.x, 19.5);
      pen.lineTo(head.x + head.width, 19.5);
      pen.stroke();
    }
  }

  paintEdges(pen, seen) {
    const family = lineage(this.state.candidates, this.chosen || this.state.best || 0);
    for (const marked of [false, true]) {
      pen.beginPath();
      for (const row of this.state.candidates) {
        const to = row && this.layout.nodes[row.number];
        if (!to) continue;
        for (const parent of row.parents) {
          const from = this.layout.nodes[parent];
          const own = family.has(row.number) && family.has(parent);
          if (!from || own !== marked || (!seen(from) && !seen(to))) continue;
          pen.moveTo(from.x, from.y);
          const middle = (from.x + to.x) / 2;
          pen.bezierCurveTo(middle, from.y, middle, to.y, to.x, to.y);
        }
      }
      pen.strokeStyle = marked ? this.colours.ink2 : this.colours.line;
      pen.lineWidth = marked ? 1.8 : 1;
      pen.stroke();
    }
  }

  paintNode(pen, node, row) {
    const { x, y } = node;
    const kind = kindOf(row);
    pen.lineWidth = 1.6;
    pen.setLineDash([]);
    pen.beginPath();
    if (kind === "correct") {
      pen.arc(x, y, RADIUS, 0, 7);
      pen.fillStyle = this.colours.scale[step(speedupOf(row, this.reference), row.spread)];
      pen.fill();
      pen.strokeStyle = row.best ? this.colours.ink : this.colours.ink3;
      pen.lineWidth = row.best ? 2 : 0.8;
    } else if (kind === "pending") {
      pen.fillStyle = this.colours.paper;
      pen.arc(x, y, RADIUS - 1, 0, 7);
      pen.fill();
      pen.setLineDash([2, 2]);
      pen.strokeStyle = row.state === "measuring" ? this.colours.accent : this.colours.ink3;
    } else {
      SHAPES[kind](pen, x, y, RADIUS);
      pen.fillStyle = this.colours.paper;
      if (!["wrong", "system", "dropped"].includes(kind)) pen.fill();
      pen.strokeStyle = kind === "dropped" ? this.colours.ink3 : kind === "unstable" || kind === "system" ? this.colours.warn : this.colours.bad;
    }
    pen.stroke();
    pen.setLineDash([]);
    if (row.number === this.state.best) this.ring(pen, x, y, this.colours.ink, 2);
    if (row.number === this.chosen) this.ring(pen, x, y, this.colours.accent, 2.5);
  }

  ring(pen, x, y, colour, width) {
    pen.beginPath();
    pen.arc(x, y, RADIUS + 2.5, 0, 7);
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }

  choose(number) {
    this.chosen = number;
    const row = number && candidate(this.state, number);
    if (!row) return;
    const parents = row.parents.length ? ` from ${row.parents.map((each) => `#${each}`).join(" and ")}` : "";
    const time = row.latency_ns ? ` · ${duration(searchNs(row))} · ${ratio(speedupOf(row, this.reference))}` : "";
    this.words.textContent = `#${number}${parents} · ${outcome(row, isOver(this.state))[2].toLowerCase()}${time}${row.title ? ` · ${row.title}` : ""}`;
    const node = this.layout.nodes[number];
    if (node.x < this.frame.scrollLeft + 20 || node.x > this.frame.scrollLeft + this.frame.clientWidth - 20) this.frame.scrollLeft = node.x - this.frame.clientWidth / 2;
    this.paint();
  }

  // Middle of a candidate's mark within the canvas, in pixels.
  where(number) {
    const node = this.layout.nodes[number];
    return node && { x: node.x - this.frame.scrollLeft, y: node.y };
  }

  hit(event) {
    return at(this.layout.nodes, event.offsetX + this.frame.scrollLeft, event.offsetY);
  }

  hover(event) {
    const number = this.hit(event);
    this.canvas.style.cursor = number ? "pointer" : "default";
    if (number && number !== this.chosen) this.choose(number);
  }

  click(event) {
    const number = this.hit(event);
    if (!number) return;
    this.choose(number);
    this.open(number);
  }

  key(event) {
    if (event.key === "Enter" && this.chosen) this.open(this.chosen);
    else if (event.key.startsWith("Arrow")) this.choose(beside(this.layout.nodes, this.chosen, event.key));
    else return;
    event.preventDefault();
  }
}

// Places of candidates in the genealogy: each generation is a block of columns, filled downward.
// Pure: numbers in, numbers out.
const CELL = 20; // pixels from one node to the next
const GAP = 16; // pixels between generations
const TOP = 26; // room for the generation's number

function place(rows, height) {
  const perColumn = Math.max(4, Math.floor((height - TOP - 8) / CELL));
  const generations = new Map();
  for (const row of rows) {
    if (!row) continue;
    if (!generations.has(row.generation)) generations.set(row.generation, []);
    generations.get(row.generation).push(row.number);
  }
  const nodes = [];
  const heads = [];
  let x = 14;
  let deepest = 0;
  for (const generation of [...generations.keys()].sort((a, b) => a - b)) {
    const numbers = generations.get(generation);
    const columns = Math.ceil(numbers.length / perColumn);
    heads.push({ generation, x, width: columns * CELL });
    numbers.forEach((number, index) => {
      nodes[number] = { x: x + Math.floor(index / perColumn) * CELL + CELL / 2, y: TOP + (index % perColumn) * CELL + CELL / 2 };
    });
    x += columns * CELL + GAP;
    deepest = Math.max(deepest, Math.min(numbers.length, perColumn));
  }
  return { nodes, heads, width: x, height: TOP + deepest * CELL + 8 };
}

// Number of the candidate at a point, or 0.
function at(nodes, x, y) {
  const reach = (CELL / 2) ** 2;
  let found = 0;
  let nearest = reach;
  nodes.forEach((node, number) => {
    const distance = (node.x - x) ** 2 + (node.y - y) ** 2;
    if (distance <= nearest) [nearest, found] = [distance, number];
  });
  return found;
}

// The nearest node in a direction, for the arrow keys.
function beside(nodes, number, key) {
  const from = nodes[number];
  if (!from) return nodes.findIndex(Boolean);
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  let found = number;
  let nearest = Infinity;
  nodes.forEach((node, other) => {
    const ahead = (node.x - from.x) * dx + (node.y - from.y) * dy;
    const aside = Math.abs((node.x - from.x) * dy) + Math.abs((node.y - from.y) * dx);
    if (other !== number && ahead > 0 && ahead + 3 * aside < nearest) [nearest, found] = [ahead + 3 * aside, other];
  });
  return found;
}

// A candidate with all its ancestors.
function lineage(rows, number) {
  const seen = new Set();
  const open = [number];
  while (open.length) {
    const next = open.pop();
    if (!next || seen.has(next) || !rows[next - 1]) continue;
    seen.add(next);
    open.push(...rows[next - 1].parents);
  }
  return seen;
}
