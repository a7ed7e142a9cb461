// Places of candidates in the genealogy: each generation is a block of columns, filled downward.
// Pure: numbers in, numbers out.

export const CELL = 20; // pixels from one node to the next
const GAP = 16; // pixels between generations
const TOP = 26; // room for the generation's number

export function place(rows, height) {
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
export function at(nodes, x, y) {
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
export function beside(nodes, number, key) {
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
export function lineage(rows, number) {
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
