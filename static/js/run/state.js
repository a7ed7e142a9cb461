// What the page knows about a run: the rows that the site sends. Only sums over rows are computed
// here. Times are in milliseconds since 1970, latencies in nanoseconds.

const FAILED_KINDS = {
  COMPILE_ERROR: "compile",
  WRONG_RESULT: "wrong", WRONG_SHAPE: "wrong", WRONG_DTYPE: "wrong",
  RUNTIME_ERROR: "crash", TIME_LIMIT: "crash", MEMORY_LIMIT: "crash",
  VIOLATION: "violation", TOO_SLOW: "slow",
  UNSTABLE: "unstable", SYSTEM_ERROR: "system",
};

export function emptyState(config) {
  return {
    seq: 0, at: 0, startedAt: config.startedAt,
    status: "RUNNING", reason: "", evaluations: 0, active_s: 0, searching: false, heardAt: 0, best: null,
    budget: config.budget, truth: config.truth, baseline_ns: config.baselineNs, baseline_name: config.baselineName,
    candidates: [], calls: new Map(), lines: [],
  };
}

// Apply what one or more events changed. `heardAt`: when the run had been active for `active_s`.
export function put(state, change, heardAt) {
  Object.assign(state, change.run, { heardAt });
  if (change.seq <= state.seq) return;
  state.seq = change.seq;
  state.at = change.at;
  for (const row of change.candidates) state.candidates[row.number - 1] = { ...state.candidates[row.number - 1], ...row };
  for (const row of change.calls) state.calls.set(row.number, { ...state.calls.get(row.number), ...row });
  state.lines.push(...change.lines);
}

// The kind of a candidate's outcome: correct, one of the failures, dropped, or pending.
export function kindOf(candidate) {
  if (candidate.state === "dropped") return "dropped";
  if (candidate.state !== "measured") return "pending";
  return candidate.latency_ns ? "correct" : FAILED_KINDS[candidate.verdict] || "system";
}

export const isOver = (state) => state.status === "FINISHED" || state.status === "STOPPED";

export function candidate(state, number) {
  return state.candidates[number - 1];
}

export const seedOf = (state) => state.candidates.find((row) => row?.edit === "seed");

// Times of the search compare with each other; a ranked one is of another plan, and is shown as such.
export const searchNs = (row) => row.search_ns || row.latency_ns;
export const rankedNs = (row) => row.ranked_ns || null;
export const speedupOf = (row, referenceNs) => (referenceNs && row?.latency_ns ? referenceNs / searchNs(row) : null);

export const waiting = (state) => [...state.calls.values()].filter((call) => call.state === "waiting");
const sum = (rows, name) => rows.reduce((total, row) => total + row[name], 0);
// The cost of two things: null, as nobody knows it, if that of one is.
const add = (one, other) => (one === null || other === null ? null : one + other);

// What finished calls cost.
export function spent(state) {
  const over = [...state.calls.values()].filter((call) => call.state !== "waiting");
  return { usd: over.reduce((total, call) => add(total, call.cost_usd), 0), tokens: sum(over, "tokens") };
}

// The most that calls in flight can cost.
export function held(state) {
  const flying = waiting(state);
  return { usd: sum(flying, "worst_usd"), tokens: sum(flying, "worst_tokens") };
}

// How long the run has searched by `now`, without pauses and without the ranking of its best.
export function activeMs(state, now) {
  return state.active_s * 1000 + (state.searching ? Math.max(0, now - state.heardAt) : 0);
}

function entry(map, key, fresh) {
  if (!map.has(key)) map.set(key, fresh());
  return map.get(key);
}

// How many candidates ended in each way; nobody wrote the seed in the run.
export function outcomesOf(state) {
  const counts = new Map();
  for (const row of state.candidates) {
    if (row?.edit === "seed") continue;
    const name = row?.state === "dropped" ? (row.replaced ? "REPLACED" : "DROPPED") : row?.state === "measured" ? row.verdict : "";
    if (name) counts.set(name, (counts.get(name) || 0) + 1);
  }
  return counts;
}

// For each language model: its calls and their cost, its candidates, and their fastest time.
export function modelsOf(state) {
  const models = new Map();
  const named = (name) => entry(models, name, () => ({ calls: 0, failed: 0, candidates: 0, usd: 0, tokens: 0, correct: 0, best: Infinity }));
  for (const call of state.calls.values()) {
    const model = named(call.model);
    model.calls += 1;
    model.failed += call.state === "failed" || call.unusable ? 1 : 0;
    model.usd = add(model.usd, call.cost_usd);
    model.tokens += call.tokens;
  }
  for (const row of state.candidates) {
    if (!row?.model) continue;
    const model = named(row.model);
    model.candidates += 1;
    if (!row.latency_ns) continue;
    model.correct += 1;
    model.best = Math.min(model.best, searchNs(row));
  }
  return models;
}

// Each verifier's votes, split by what was then measured.
export function verifiersOf(state) {
  const verifiers = new Map();
  for (const row of state.candidates) {
    for (const [name, passes] of Object.entries(row?.votes || {})) {
      const verifier = entry(verifiers, name, () => ({ votes: 0, passes: 0, passedRight: 0, passedWrong: 0, refusedRight: 0, refusedWrong: 0 }));
      verifier.votes += 1;
      verifier.passes += passes ? 1 : 0;
      const right = state.truth[name]?.[row.verdict];
      if (typeof right === "boolean") verifier[`${passes ? "passed" : "refused"}${right ? "Right" : "Wrong"}`] += 1;
    }
  }
  return verifiers;
}
