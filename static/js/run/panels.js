// The panels beside the charts: meters, outcomes, language models, verifiers, islands, calls, log.
import { activeMs, candidate, held, kindOf, modelsOf, outcomesOf, rankedNs, searchNs, seedOf, speedupOf, spent, verifiersOf, waiting } from "./state.js";
import { VERDICTS, clock, cost, duration, element, percent, period, ratio, usd, whole } from "./format.js";
import { step } from "./colours.js";

const ORDER = ["CORRECT", "UNSTABLE", "COMPILE_ERROR", "WRONG_RESULT", "WRONG_SHAPE", "WRONG_DTYPE", "RUNTIME_ERROR", "TIME_LIMIT", "MEMORY_LIMIT", "VIOLATION", "TOO_SLOW", "SYSTEM_ERROR", "DROPPED", "REPLACED"];
const UNMEASURED = ["DROPPED", "REPLACED", "SYSTEM_ERROR"];
const SHOWN_LOG = 60;

function cell(text, numeric) {
  return element("td", numeric ? "n" : "", text);
}

function rowOf(head, cells) {
  const row = element("tr");
  const name = element("th", "", head);
  name.scope = "row";
  row.append(name, ...cells);
  return row;
}

// Panels with nothing to say are not there; `id` names a section with a table.
function fill(id, rows) {
  const section = document.getElementById(id);
  if (!section) return;
  section.hidden = rows.length === 0;
  if (rows.length) section.querySelector("tbody").replaceChildren(...rows);
}

export function meters(state, now) {
  const seconds = activeMs(state, now) / 1000;
  const flying = held(state);
  const paid = spent(state);
  const rows = {
    usd: [paid.usd, flying.usd, usd], tokens: [paid.tokens, flying.tokens, whole],
    evaluations: [state.evaluations, 0, whole], wall_time_s: [seconds, 0, period],
  };
  for (const [name, [value, more, words]] of Object.entries(rows)) {
    const box = document.querySelector(`[data-meter="${name}"]`);
    if (!box) continue;
    const cap = state.budget[name];
    const capped = cap !== null && cap !== undefined;
    const used = name === "usd" ? cost(paid.usd) : words(value);
    box.querySelector(".value").textContent = capped ? `${used} of ${words(cap)}` : used;
    box.querySelector(".held").textContent = more > 0 ? `+ at most ${words(more)} under way` : capped ? "" : "no cap";
    const meter = box.querySelector("meter");
    meter.hidden = !capped;
    if (capped) {
      meter.max = Math.max(cap, 1e-9);
      meter.value = value + more;
      meter.textContent = percent(value / (cap || 1));
    }
  }
}

export function figures(state) {
  const best = state.best === null ? null : candidate(state, state.best);
  const ends = outcomesOf(state);
  const measured = [...ends].reduce((sum, [name, each]) => sum + (UNMEASURED.includes(name) ? 0 : each), 0);
  const say = (name, text) => { document.querySelector(`[data-figure="${name}"]`).textContent = text; };
  say("best", best ? duration(best.latency_ns) : "–");
  say("best-sub", best ? `candidate ${best.number}, ${rankedNs(best) ? "ranked, best by score" : "in the search"}` : "no correct candidate yet");
  const seed = seedOf(state);
  say("floor", best?.floor_fraction ? percent(best.floor_fraction) : "–");
  say("floor-sub", best && !best.floor_fraction ? "no known physical limit for this device" : "");
  say("candidates", whole(state.candidates.length));
  say("candidates-sub", `${seed ? "including the seed kernel; others: " : "written; "}${whole(measured)} measured, ${whole(ends.get("CORRECT") || 0)} correct`);
}

export function outcomes(state) {
  const ends = outcomesOf(state);
  const total = [...ends.values()].reduce((sum, each) => sum + each, 0);
  const bar = document.getElementById("outcome-bar");
  const known = ORDER.filter((name) => ends.get(name));
  bar.replaceChildren(...known.map((name) => {
    const count = ends.get(name);
    const part = element("span", `part part-${name.toLowerCase().replaceAll("_", "-")}`, count / total > 0.12 ? VERDICTS[name][2] : "");
    part.style.flexGrow = count;
    part.title = `${VERDICTS[name][2]}: ${count}`;
    return part;
  }));
  fill("outcomes", known.map((name) => {
    const count = ends.get(name);
    const [kind, sign, words] = VERDICTS[name];
    const row = rowOf("", [cell(whole(count), true), cell(percent(count / total), true)]);
    const badge = element("span", `badge ${kind}`);
    badge.append(element("span", "", sign), words);
    row.firstChild.append(badge);
    return row;
  }));
}

export function models(state) {
  const all = [...modelsOf(state).entries()].sort((a, b) => b[1].calls - a[1].calls);
  const total = all.reduce((sum, [, model]) => sum + model.calls, 0);
  fill("models", all.map(([name, model]) => rowOf(name, [
    cell(`${whole(model.calls)} (${percent(model.calls / (total || 1))})`, true), cell(whole(model.failed), true), cell(whole(model.candidates), true),
    cell(whole(model.correct), true), cell(duration(model.correct && model.best), true), cell(whole(model.tokens), true), cell(cost(model.usd), true),
  ])));
}

export function verifiers(state) {
  fill("verifiers", [...verifiersOf(state).entries()].map(([name, each]) => rowOf(name, [
    cell(whole(each.votes), true), cell(whole(each.passes), true), cell(whole(each.votes - each.passes), true),
    cell(`${whole(each.passedRight)} passed, ${whole(each.passedWrong)} failed`, true), cell(`${whole(each.refusedWrong)} failed, ${whole(each.refusedRight)} passed`, true),
  ])));
}

function bestOf(rows) {
  return rows.reduce((best, row) => (row.latency_ns && (!best || searchNs(row) < searchNs(best)) ? row : best), null);
}

// The technique by which the archive files a candidate: the most telling one.
const technique = (row) => row.techniques[0] || "plain";

export function islands(state, strategy, reference, open) {
  const rows = state.candidates.filter(Boolean);
  const names = [...new Set(rows.map((row) => row.island))].sort((a, b) => a - b);
  const techniques = [...new Set(rows.filter((row) => row.latency_ns).map(technique))].sort();
  const shown = strategy === "islands" || names.length > 1;
  document.getElementById("islands").hidden = !shown;
  if (!shown) return;
  const chosen = document.getElementById("island-choice");
  const options = ["all", ...names.map(String)];
  if (chosen.options.length !== options.length) {
    const before = chosen.value;
    chosen.replaceChildren(...options.map((name) => new Option(name === "all" ? "all islands" : `island ${Number(name)}`, name)));
    chosen.value = options.includes(before) ? before : "all";
  }
  document.querySelector("#islands .island-rows").replaceChildren(...names.map((name) => {
    const own = rows.filter((row) => row.island === name);
    const best = bestOf(own);
    return rowOf(`Island ${name}`, [cell(whole(own.length), true), cell(whole(own.filter((row) => row.latency_ns).length), true), cell(duration(best && searchNs(best)), true), cell(ratio(speedupOf(best, reference)), true)]);
  }));
  grid(rows.filter((row) => chosen.value === "all" || String(row.island) === chosen.value), techniques, reference, open);
}

function grid(rows, techniques, reference, open) {
  const table = document.getElementById("grid");
  const correct = rows.filter((row) => kindOf(row) === "correct");
  const bottlenecks = [...new Set(correct.map((row) => row.bottleneck || "unknown"))].sort();
  table.hidden = correct.length === 0;
  const head = element("tr");
  head.append(element("th", "", "Technique"), ...bottlenecks.map((name) => element("th", "n", name)));
  for (const each of head.children) each.scope = "col";
  table.querySelector("thead").replaceChildren(head);
  table.querySelector("tbody").replaceChildren(...techniques.map((name) => rowOf(name, bottlenecks.map((bottleneck) => {
    const best = bestOf(correct.filter((row) => technique(row) === name && (row.bottleneck || "unknown") === bottleneck));
    const made = cell("", true);
    if (!best) return made;
    const speedup = speedupOf(best, reference);
    const button = element("button", `grid-cell scale-${step(speedup, best.spread)}`, `${ratio(speedup)} #${best.number}`);
    button.type = "button";
    button.addEventListener("click", () => open(best.number));
    made.append(button);
    return made;
  }))));
}

export function calls(state, progress, now) {
  const flying = waiting(state);
  const measuring = state.candidates.filter((row) => row?.measuring);
  const section = document.getElementById("calls");
  const busy = flying.length || measuring.length;
  section.querySelector(".calls-none").hidden = Boolean(busy);
  section.querySelector("ul").replaceChildren(
    ...flying.map((call) => {
      const heard = progress.get(call.number);
      const since = state.status === "PAUSED" && !heard
        ? "waiting for the run to resume, unless it was sent before the pause"
        : `for ${period(Math.max(0, now - call.at) / 1000)}`;
      const line = element("li", "", `Call ${call.number}: ${call.verifier || call.role} by ${call.model}${call.about ? `, about #${call.about}` : ""}, ${since}`);
      if (heard) line.append(element("span", "faint num", ` ${whole(heard.characters || 0)} characters`));
      return line;
    }),
    ...measuring.slice(0, 12).map((row) => element("li", "", `Candidate ${row.number}: evaluation queued or running`)),
  );
}

export function log(state, callUrl) {
  const lines = state.lines.slice(-SHOWN_LOG).reverse();
  const list = document.getElementById("log-lines");
  list.replaceChildren(...lines.map((line) => {
    const item = element("li", line.bad ? "bad" : "");
    item.append(element("span", "num faint", clock(line.at)), ` ${line.bad ? "✗ " : ""}${line.text}`);
    if (line.call) {
      const link = element("a", "", "Prompt and answer");
      link.href = callUrl.replace("/0/", `/${line.call}/`);
      item.append(" ", link);
    }
    return item;
  }));
}
