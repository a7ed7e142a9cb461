// What is known of a run after its first events: one fold, for the live page and for the replay.
// Pure: it touches no page. Times are in milliseconds since 1970, latencies in nanoseconds.

const FAILED_KINDS = {
  COMPILE_ERROR: "compile",
  WRONG_RESULT: "wrong", WRONG_SHAPE: "wrong", WRONG_DTYPE: "wrong",
  RUNTIME_ERROR: "crash", TIME_LIMIT: "crash", MEMORY_LIMIT: "crash",
  VIOLATION: "violation",
  UNSTABLE: "unstable", SYSTEM_ERROR: "system",
};

const MOST_LOSSES = 3; // evaluations of a candidate in one mode that are lost before its run goes on without it

export function emptyState(config) {
  return {
    seq: 0, at: 0, startedAt: 0,
    status: "RUNNING", reason: "", runningSince: 0, activeMs: 0, byBudget: false,
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

// Time that the run has been running, pauses left out, as of `now`.
export function activeMs(state, now) {
  return state.activeMs + (state.runningSince ? Math.max(0, now - state.runningSince) : 0);
}

function entry(map, key, fresh) {
  if (!map.has(key)) map.set(key, fresh());
  return map.get(key);
}

const newModel = () => ({ asks: 0, answered: 0, failed: 0, candidates: 0, correct: 0, best: null, usd: 0, tokens: 0 });
const newVerifier = () => ({ votes: 0, passes: 0, passedRight: 0, passedWrong: 0, refusedRight: 0, refusedWrong: 0 });

function asked(state, fact, at) {
  const worst = { usd: fact.worst_usd || 0, tokens: fact.worst_tokens || 0 };
  const ask = { number: fact.number, role: fact.role, model: fact.model, verifier: fact.verifier || "", about: fact.about, parents: fact.parents || [], worst, at };
  state.asks.set(fact.number, ask);
  state.waiting.add(fact.number);
  entry(state.models, fact.model, newModel).asks += 1;
}

function settled(state, fact, at, failed) {
  const ask = state.asks.get(fact.ask);
  if (!ask || !state.waiting.delete(fact.ask)) return;
  const usd = fact.cost_usd || 0;
  const tokens = (fact.tokens_in || 0) + (fact.tokens_out || 0);
  const model = entry(state.models, ask.model, newModel);
  state.usd += usd;
  state.tokens += tokens;
  model.usd += usd;
  model.tokens += tokens;
  model[failed ? "failed" : "answered"] += 1;
  ask.problem = failed ? fact.reason : fact.problem || "";
  if (ask.problem) state.log.push({ at, text: `Call ${fact.ask} (${ask.role}, ${ask.model}): ${ask.problem}`, bad: true });
}

function drafted(state, fact, at) {
  const place = fact.place || {};
  state.candidates[fact.number - 1] = {
    number: fact.number, at, edit: fact.edit, parents: fact.parents || [], ask: fact.ask, model: fact.model || "",
    generation: place.generation || 0, slot: place.slot || 0, island: place.island || 0,
    title: fact.title || "", knobs: fact.knobs || null, techniques: fact.techniques || [],
    state: "drafted", votes: null, verdict: "", reason: "", latency: null, spread: null, speedup: null, floor: null, bottleneck: "", best: false,
    losses: {}, cancelled: false,
  };
  if (fact.edit === "seed" && state.seed === null) state.seed = fact.number;
  if (fact.model) entry(state.models, fact.model, newModel).candidates += 1;
}

function voted(state, fact) {
  const row = candidate(state, fact.candidate);
  if (!row) return;
  const verifier = entry(state.verifiers, fact.verifier, newVerifier);
  row.votes = row.votes || {};
  if (fact.verifier in row.votes) verifier.passes -= row.votes[fact.verifier];
  else verifier.votes += 1;
  row.votes[fact.verifier] = fact.passes ? 1 : 0;
  verifier.passes += row.votes[fact.verifier];
}

// Count a candidate's votes by what hardware said in each verifier's own question, where it told.
function compareVotes(state, row, by) {
  for (const [name, passes] of Object.entries(row.votes || {})) {
    const right = state.truth[name]?.[row.verdict];
    if (typeof right === "boolean") state.verifiers.get(name)[`${passes ? "passed" : "refused"}${right ? "Right" : "Wrong"}`] += by;
  }
}

// Whether an evaluation ended without a word on its kernel: lost, or cancelled as the run ended.
function saysNothing(state, row, fact, at) {
  if (fact.verdict !== "SYSTEM_ERROR") return false;
  const cancelled = isOver(state);
  const why = fact.reason ? `: ${fact.reason}` : "";
  state.log.push({ at, text: `The evaluation of candidate ${row.number} was ${cancelled ? "cancelled" : "lost"}${why}`, bad: !cancelled });
  if (row.verdict && row.verdict !== "SYSTEM_ERROR") return true;
  if (!cancelled) row.losses[fact.mode] = (row.losses[fact.mode] || 0) + 1;
  if (!cancelled && row.losses[fact.mode] >= MOST_LOSSES) return false;
  row.cancelled = cancelled;
  if (row.state === "measuring") row.state = "drafted";
  return true;
}

function measured(state, fact, at) {
  const row = candidate(state, fact.candidate);
  if (!row) return;
  state.measuring.delete(fact.candidate);
  if (saysNothing(state, row, fact, at)) return;
  row.bottleneck = fact.bottleneck || row.bottleneck;
  if (row.verdict && fact.mode === "profile") return; // a profile explains a time, it does not replace it
  if (row.verdict) {
    count(state, row.verdict, -1);
    compareVotes(state, row, -1);
  }
  Object.assign(row, {
    state: "measured", verdict: fact.verdict, reason: fact.reason || "", measuredAt: at,
    latency: fact.verdict === "CORRECT" ? fact.latency_ns || null : null, spread: fact.spread || null,
    speedup: fact.speedup || null, floor: fact.floor_fraction || null,
  });
  count(state, row.verdict, 1);
  compareVotes(state, row, 1);
  if (!row.latency) return;
  const model = row.model && entry(state.models, row.model, newModel);
  if (model) {
    model.correct += 1;
    if (!model.best || row.latency < model.best) model.best = row.latency;
  }
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

function dropped(state, fact) {
  const row = candidate(state, fact.candidate);
  if (!row) return;
  row.state = "dropped";
  row.reason = fact.reason || "";
  count(state, "DROPPED", 1);
}

function measuring(state, fact) {
  const row = candidate(state, fact.candidate);
  if (!row) return;
  state.evaluations += 1;
  state.measuring.add(fact.candidate);
  row.cancelled = false;
  if (row.state === "drafted") row.state = "measuring";
}

function turn(state, status, reason, at) {
  if (state.runningSince && status !== "RUNNING") {
    state.activeMs += at - state.runningSince;
    state.runningSince = 0;
  } else if (!state.runningSince && status === "RUNNING") {
    state.runningSince = at;
  }
  state.status = status;
  state.reason = reason;
}

const by = (fact) => (fact.by ? ` by ${fact.by}` : "");

const LIFE = {
  started: (state, fact, at) => {
    state.startedAt = at;
    turn(state, "RUNNING", "", at);
    return `Started${by(fact)}`;
  },
  paused: (state, fact, at) => {
    turn(state, "PAUSED", fact.reason || "", at);
    return fact.by || !fact.reason ? `Paused${by(fact)}` : `Paused: ${fact.reason}`;
  },
  resumed: (state, fact, at) => {
    turn(state, "RUNNING", "", at);
    return `Resumed${by(fact)}`;
  },
  stopped: (state, fact, at) => {
    turn(state, "STOPPED", fact.reason || "", at);
    return `Stopped${by(fact)}`;
  },
  finished: (state, fact, at) => {
    turn(state, "FINISHED", fact.reason || "", at);
    state.byBudget = Boolean(fact.by_budget);
    return `Finished: ${fact.reason || "no reason given"}`;
  },
  extended: (state, fact, at) => {
    state.budget = fact.budget || state.budget;
    if (state.status === "FINISHED" && state.byBudget) turn(state, "RUNNING", "", at);
    return "The budget was changed";
  },
  entered: (state, fact) => `Candidate ${fact.candidate} was submitted`,
  note: (state, fact) => fact.text || "",
};

const FACTS = {
  asked,
  answered: (state, fact, at) => settled(state, fact, at, false),
  failed: (state, fact, at) => settled(state, fact, at, true),
  drafted, voted, dropped, measuring, measured,
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
  const fact = event.payload || {};
  if (FACTS[event.kind]) FACTS[event.kind](state, fact, event.at);
  else if (LIFE[event.kind]) {
    const text = LIFE[event.kind](state, fact, event.at);
    if (text) state.log.push({ at: event.at, text });
  }
  return true;
}
