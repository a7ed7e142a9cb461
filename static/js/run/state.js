// What is known of a run after its first events: one fold, for the live page and for the replay.
// Pure: it touches no page. Times are in milliseconds since 1970, latencies in nanoseconds.

const FAILED_KINDS = {
  COMPILE_ERROR: "compile",
  WRONG_RESULT: "wrong", WRONG_SHAPE: "wrong", WRONG_DTYPE: "wrong",
  RUNTIME_ERROR: "crash", TIME_LIMIT: "crash", MEMORY_LIMIT: "crash",
  VIOLATION: "violation",
  UNSTABLE: "unstable", SYSTEM_ERROR: "system",
};

const LAST_MODES = new Set(["ranked", "audit"]); // of the evaluations that follow a search
const SAY_NOTHING = new Set(["SYSTEM_ERROR", "UNSTABLE"]);
const REPLACED = "the compiler role changed it"; // how the reason begins of a draft whose repaired version is measured
const MOST_LOSSES = 3; // evaluations of a candidate in one mode that are lost before its run goes on without it

export function emptyState(config) {
  return {
    seq: 0, at: 0, startedAt: 0,
    status: "RUNNING", reason: "", runningSince: 0, activeMs: 0, byBudget: false,
    searched: null, // how the search ended, while its best are ranked: that is no running time
    budget: config.budget || {}, truth: config.truth || {},
    candidates: [], asks: new Map(), waiting: new Set(), measuring: new Set(),
    usd: 0, tokens: 0, evaluations: 0,
    seed: null, best: null, steps: [],
    outcomes: new Map(), models: new Map(), verifiers: new Map(), log: [],
  };
}

// The kind of a candidate's outcome: correct, one of the failures, dropped, or pending.
export function kindOf(candidate) {
  if (candidate.state === "dropped") return "dropped";
  if (candidate.state !== "measured") return "pending";
  return candidate.latency ? "correct" : FAILED_KINDS[candidate.verdict] || "system";
}

export const isOver = (state) => state.status === "FINISHED" || state.status === "STOPPED";

// What calls in flight cost at most: a sum of its own each time, so that no rest is left when they end.
export function held(state) {
  const worst = [...state.waiting].map((number) => state.asks.get(number).worst);
  return { usd: worst.reduce((sum, each) => sum + each.usd, 0), tokens: worst.reduce((sum, each) => sum + each.tokens, 0) };
}

export function candidate(state, number) {
  return state.candidates[number - 1];
}

// Time that the run has searched as of `now`: without pauses, and without the ranking of its best.
export function activeMs(state, now) {
  return state.activeMs + (state.runningSince ? Math.max(0, now - state.runningSince) : 0);
}

function entry(map, key, fresh) {
  if (!map.has(key)) map.set(key, fresh());
  return map.get(key);
}

const newModel = () => ({ asks: 0, answered: 0, failed: 0, candidates: 0, usd: 0, tokens: 0 });
const newVerifier = () => ({ votes: 0, passes: 0, passedRight: 0, passedWrong: 0, refusedRight: 0, refusedWrong: 0 });

function asked(state, payload, at) {
  const worst = { usd: payload.worst_usd || 0, tokens: payload.worst_tokens || 0 };
  const ask = { number: payload.number, role: payload.role, model: payload.model, verifier: payload.verifier || "", about: payload.about, parents: payload.parents || [], worst, at };
  state.asks.set(payload.number, ask);
  state.waiting.add(payload.number);
  entry(state.models, payload.model, newModel).asks += 1;
}

function settled(state, payload, at, failed) {
  const ask = state.asks.get(payload.ask);
  if (!ask || !state.waiting.delete(payload.ask)) return;
  const usd = payload.cost_usd || 0;
  const tokens = (payload.tokens_in || 0) + (payload.tokens_out || 0);
  const model = entry(state.models, ask.model, newModel);
  state.usd += usd;
  state.tokens += tokens;
  model.usd += usd;
  model.tokens += tokens;
  model[failed ? "failed" : "answered"] += 1;
  ask.problem = failed ? payload.reason : payload.problem || "";
  if (ask.problem) state.log.push({ at, text: `Call ${payload.ask} (${ask.role}, ${ask.model}): ${ask.problem}`, bad: true });
}

function drafted(state, payload, at) {
  const place = payload.place || {};
  state.candidates[payload.number - 1] = {
    number: payload.number, at, edit: payload.edit, parents: payload.parents || [], ask: payload.ask, model: payload.model || "",
    generation: place.generation || 0, slot: place.slot || 0, island: place.island || 0,
    title: payload.title || "", knobs: payload.knobs || null, techniques: payload.techniques || [],
    state: "drafted", votes: null, verdict: "", reason: "", latency: null, spread: null, speedup: null, floor: null, bottleneck: "", best: false,
    losses: {}, cancelled: false, replaced: false,
  };
  if (payload.edit === "seed" && state.seed === null) state.seed = payload.number;
  if (payload.model) entry(state.models, payload.model, newModel).candidates += 1;
}

function voted(state, payload) {
  const row = candidate(state, payload.candidate);
  if (!row) return;
  const verifier = entry(state.verifiers, payload.verifier, newVerifier);
  row.votes = row.votes || {};
  if (payload.verifier in row.votes) verifier.passes -= row.votes[payload.verifier];
  else verifier.votes += 1;
  row.votes[payload.verifier] = payload.passes ? 1 : 0;
  verifier.passes += row.votes[payload.verifier];
}

// Count a candidate's votes by what hardware said in each verifier's own question, where it told.
function compareVotes(state, row, by) {
  for (const [name, passes] of Object.entries(row.votes || {})) {
    const right = state.truth[name]?.[row.verdict];
    if (typeof right === "boolean") state.verifiers.get(name)[`${passes ? "passed" : "refused"}${right ? "Right" : "Wrong"}`] += by;
  }
}

// Whether an evaluation ended without a word on its kernel: lost, or cancelled as the run ended.
function saysNothing(state, row, payload, at) {
  if (payload.verdict !== "SYSTEM_ERROR") return false;
  const cancelled = isOver(state);
  const why = payload.reason ? `: ${payload.reason}` : "";
  state.log.push({ at, text: `The evaluation of candidate ${row.number} was ${cancelled ? "cancelled" : "lost"}${why}`, bad: !cancelled });
  if (row.verdict && row.verdict !== "SYSTEM_ERROR") return true; // what was known of it stays
  if (!cancelled) row.losses[payload.mode] = (row.losses[payload.mode] || 0) + 1;
  if (!cancelled && row.losses[payload.mode] >= MOST_LOSSES) return false;
  row.cancelled = cancelled;
  if (row.state === "measuring") row.state = "drafted";
  return true;
}

// What was ranked or audited after the search: whether it takes the place of what was known. An audit's time does
// where it is the longer one.
function ranked(state, row, payload, at) {
  const how = payload.mode === "audit" ? "audited" : "ranked";
  const refused = payload.verdict !== "CORRECT" && !SAY_NOTHING.has(payload.verdict);
  const words = payload.verdict === "CORRECT" ? "it is right" : payload.reason || payload.verdict;
  state.log.push({ at, text: `Candidate ${row.number} was ${refused ? "refused when it was " : ""}${how}: ${words}`, bad: refused });
  if (payload.mode === "ranked") row.isNoisy = SAY_NOTHING.has(payload.verdict); // too noisy to be a claim
  const counts = payload.mode === "ranked" || payload.latency_ns > (row.latency ?? Infinity);
  return refused || (payload.verdict === "CORRECT" && counts);
}

// By language model: how many of its candidates are correct now, and the fastest time among them.
export function resultsOfModels(state) {
  const results = new Map();
  for (const row of state.candidates) {
    if (!row?.model || !row.latency) continue;
    const result = entry(results, row.model, () => ({ correct: 0, best: Infinity }));
    result.correct += 1;
    result.best = Math.min(result.best, row.latency);
  }
  return results;
}

function fastest(state) {
  const correct = state.candidates.filter((row) => row?.latency);
  return correct.length ? correct.reduce((a, b) => (b.latency < a.latency ? b : a)).number : null;
}

function measured(state, payload, at) {
  const row = candidate(state, payload.candidate);
  if (!row) return;
  state.measuring.delete(payload.candidate);
  if (saysNothing(state, row, payload, at)) return;
  const last = LAST_MODES.has(payload.mode);
  if (last && !ranked(state, row, payload, at)) return;
  row.bottleneck = payload.bottleneck || row.bottleneck;
  if (row.verdict && payload.mode === "profile") return; // a profile explains a time, it does not replace it
  if (row.verdict) {
    count(state, row.verdict, -1);
    compareVotes(state, row, -1);
  }
  Object.assign(row, {
    state: "measured", verdict: payload.verdict, reason: payload.reason || "", measuredAt: at,
    latency: payload.verdict === "CORRECT" ? payload.latency_ns || null : null, spread: payload.spread || null,
    speedup: payload.speedup || null, floor: payload.floor_fraction || null,
  });
  count(state, row.verdict, 1);
  compareVotes(state, row, 1);
  if (last && !row.latency && state.best === row.number) state.best = fastest(state);
  if (last || !row.latency) return;
  const best = state.best === null ? null : candidate(state, state.best);
  if (!best || row.latency < best.latency) {
    state.best = row.number;
    row.best = true;
    state.steps.push({ number: row.number, at, latency: row.latency });
  }
}

function count(state, outcome, by) {
  state.outcomes.set(outcome, (state.outcomes.get(outcome) || 0) + by);
}

function dropped(state, payload) {
  const row = candidate(state, payload.candidate);
  if (!row) return;
  row.state = "dropped";
  row.reason = payload.reason || "";
  row.replaced = row.reason.startsWith(REPLACED);
  count(state, row.replaced ? "REPLACED" : "DROPPED", 1);
}

function measuring(state, payload) {
  const row = candidate(state, payload.candidate);
  if (!row) return;
  if (!LAST_MODES.has(payload.mode)) state.evaluations += 1;
  state.measuring.add(payload.candidate);
  row.cancelled = false;
  if (row.state === "drafted") row.state = "measuring";
}

function turn(state, status, reason, at) {
  const searches = status === "RUNNING" && !state.searched;
  if (state.runningSince && !searches) {
    state.activeMs += at - state.runningSince;
    state.runningSince = 0;
  } else if (!state.runningSince && searches) {
    state.runningSince = at;
  }
  state.status = status;
  state.reason = reason;
}

const by = (payload) => (payload.by ? ` by ${payload.by}` : "");

const LIFE = {
  started: (state, payload, at) => {
    state.startedAt = at;
    turn(state, "RUNNING", "", at);
    return `Started${by(payload)}`;
  },
  paused: (state, payload, at) => {
    turn(state, "PAUSED", payload.reason || "", at);
    return payload.by || !payload.reason ? `Paused${by(payload)}` : `Paused: ${payload.reason}`;
  },
  resumed: (state, payload, at) => {
    turn(state, "RUNNING", "", at);
    return `Resumed${by(payload)}`;
  },
  stopped: (state, payload, at) => {
    turn(state, "STOPPED", payload.reason || "", at);
    return `Stopped${by(payload)}`;
  },
  searched: (state, payload, at) => {
    state.searched = payload;
    turn(state, state.status, payload.reason || "", at);
    return `The search has ended (${payload.reason}), and its best are ranked`;
  },
  chosen: (state, payload) => {
    state.best = payload.candidate;
    const proof = payload.is_audited ? "ranked and audited" : payload.is_ranked ? "ranked" : "not ranked";
    return `Candidate ${payload.candidate} is the best, ${proof}: ${payload.reason}`;
  },
  finished: (state, payload, at) => {
    turn(state, "FINISHED", payload.reason || "", at);
    state.byBudget = Boolean(payload.by_budget);
    return `Finished: ${payload.reason || "no reason given"}`;
  },
  extended: (state, payload, at) => {
    state.budget = payload.budget || state.budget;
    const more = Object.entries(payload.parameters || {});
    if (state.searched && (state.searched.by_budget || more.length)) {
      state.searched = null;
      turn(state, state.status, state.status === "RUNNING" ? "" : state.reason, at);
    }
    if (state.status === "FINISHED" && (state.byBudget || more.length)) turn(state, "RUNNING", "", at);
    return more.length ? `Extended: ${more.map(([name, value]) => `${name} ${value}`).join(", ")}` : "The budget was changed";
  },
  briefed: () => "More is known of the task or its device: prompts tell it from now on",
  entered: (state, payload) => `Candidate ${payload.candidate} was submitted`,
  note: (state, payload) => payload.text || "",
};

const EVENTS = {
  asked,
  answered: (state, payload, at) => settled(state, payload, at, false),
  failed: (state, payload, at) => settled(state, payload, at, true),
  drafted, voted, dropped, measuring, measured,
  tried: (state) => { state.evaluations += 1; }, // a kernel that a command had measured before its answer
};

// Add one event. Events come in the order of their numbers; one that is known is left out.
export function apply(state, event) {
  if (event.seq <= state.seq) return false;
  state.seq = event.seq;
  state.at = event.at;
  if (!state.startedAt) {
    state.startedAt = event.at;
    state.runningSince = event.at;
  }
  const payload = event.payload || {};
  if (EVENTS[event.kind]) EVENTS[event.kind](state, payload, event.at);
  else if (LIFE[event.kind]) {
    const text = LIFE[event.kind](state, payload, event.at);
    if (text) state.log.push({ at: event.at, text });
  }
  return true;
}
