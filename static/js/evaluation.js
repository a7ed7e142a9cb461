// Keeps the page of a running evaluation up to date: by WebSocket, and by polling while that is down.
(() => {
  "use strict";

  const POLL_MS = 3000;
  const LAST_WAIT_MS = 15000;
  const SIGNS = { pending: "○", running: "●", done: "✓", failed: "✗" };

  let socket = null;
  let seq = 0;
  let failures = 0;
  let poll = 0;

  const live = () => document.getElementById("live");
  // Also after its end something can still come: a person's decision, or an audit's.
  const isOver = () => ["FINISHED", "CANCELLED"].includes(live().dataset.status) && !("waits" in live().dataset);

  function say(state, words) {
    const sign = live().querySelector(".live");
    if (!sign) return;
    sign.dataset.state = state;
    sign.textContent = words;
  }

  async function refresh() {
    const response = await fetch(live().dataset.url, { headers: { "X-Requested-With": "fetch" } });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("live");
    await kbench.released(live());
    const open = [...live().querySelectorAll("details")].map((each) => each.open);
    live().replaceWith(fresh);
    [...live().querySelectorAll("details")].forEach((each, index) => { if (open[index]) each.open = true; });
    seq = Math.max(seq, Number(live().dataset.seq));
    const outcome = document.getElementById("outcome").textContent.trim();
    const announce = document.getElementById("announce");
    if (announce.textContent !== outcome) announce.textContent = outcome;
    if (isOver()) stop();
    else if (socket && socket.readyState === WebSocket.OPEN) say("live", "live");
  }

  function showStage(event) {
    const row = live().querySelector(`[data-stage="${CSS.escape(event.stage)}"]`);
    if (!row) return;
    const state = event.payload.state;
    if (state !== "running") delete row.dataset.since;
    else if (row.dataset.state !== "running") row.dataset.since = event.at;
    row.dataset.state = state;
    row.querySelector(".sign").textContent = SIGNS[state] || "○";
    row.querySelector(".state").textContent = ` ${state}`;
    if (event.payload.detail) row.querySelector(".detail").textContent = event.payload.detail;
  }

  function tick() {
    for (const row of live().querySelectorAll("[data-since]")) {
      const elapsed = Math.max(0, (Date.now() - Date.parse(row.dataset.since)) / 1000);
      const minutes = Math.floor(elapsed / 60);
      const rest = (elapsed % 60).toFixed(elapsed < 10 ? 1 : 0);
      row.querySelector(".num").textContent = minutes ? `${minutes} min ${rest.padStart(2, "0")} s` : `${rest} s`;
    }
  }

  function receive(event) {
    if (event.seq <= seq) return;
    seq = event.seq;
    if (event.kind === "stage") showStage(event);
    else refresh().catch(() => startPolling());
  }

  function startPolling() {
    if (poll || isOver()) return;
    say("polling", "asking every 3 s");
    poll = setInterval(() => {
      if (!document.hidden) refresh().catch(() => say("polling", "the site does not answer; trying again"));
    }, POLL_MS);
  }

  function stopPolling() {
    clearInterval(poll);
    poll = 0;
  }

  function stop() {
    stopPolling();
    clearInterval(clock);
    if (socket) socket.close();
  }

  function connect() {
    if (isOver()) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const id = live().dataset.evaluation;
    socket = new WebSocket(`${scheme}://${location.host}/ws/evaluations/${id}/?since=${seq}`);
    socket.onopen = () => {
      failures = 0;
      stopPolling();
      say("live", "live");
    };
    socket.onmessage = (message) => receive(JSON.parse(message.data));
    socket.onclose = () => {
      if (isOver()) return;
      startPolling();
      failures += 1;
      setTimeout(connect, Math.min(LAST_WAIT_MS, 500 * 2 ** failures));
    };
  }

  // The form led here, so the server has the source: the draft has served.
  function forgetDraft() {
    try {
      const name = sessionStorage.getItem("kbench-sent");
      sessionStorage.removeItem("kbench-sent");
      const from = document.referrer && new URL(document.referrer);
      if (name && from && from.origin === location.origin && from.pathname.startsWith("/submit/")) localStorage.removeItem(name);
    } catch {
      // Without storage there is no draft.
    }
  }

  forgetDraft();
  seq = Number(live().dataset.seq);
  const clock = setInterval(tick, 200);
  if (isOver()) clearInterval(clock);
  else connect();
})();
