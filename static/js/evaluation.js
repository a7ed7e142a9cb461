// Keeps what is shown of a running evaluation up to date: by WebSocket, and by polling while that is down.
(() => {
  "use strict";

  const POLL_MS = 3000;
  const WAITING_MS = 10000; // while it waits nothing is sent, but what is ahead of it progresses
  const LAST_WAIT_MS = 15000;
  const SIGNS = { pending: "○", running: "●", done: "✓", failed: "✗" };
  const live = () => document.getElementById("live");
  const plainTitle = document.title;

  // Also after its end something can still come: a person's decision, or an audit's.
  const isOver = () => !live() || (["FINISHED", "CANCELLED"].includes(live().dataset.status) && !("waits" in live().dataset));

  function say(state, words) {
    const sign = live()?.querySelector(".live");
    if (!sign) return;
    sign.dataset.state = state;
    sign.textContent = words;
  }

  // A tab in the background says in its title how it went.
  function announce() {
    const said = live().querySelectorAll("#outcome .hero, #outcome .badge");
    const outcome = [...said].map((each) => each.innerText.trim()).join(" ").replace(/\s+/g, " ");
    const announcement = document.getElementById("announce");
    if (announcement && announcement.textContent !== outcome) announcement.textContent = outcome;
    const badge = live().querySelector("#outcome .hero-words, #outcome .badge");
    if (badge) document.title = `${badge.textContent.trim()} · ${plainTitle}`;
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
    for (const row of live()?.querySelectorAll("[data-since]") || []) {
      const elapsed = Math.max(0, (Date.now() - Date.parse(row.dataset.since)) / 1000);
      const minutes = Math.floor(elapsed / 60);
      const rest = (elapsed % 60).toFixed(elapsed < 10 ? 1 : 0);
      row.querySelector(".num").textContent = minutes ? `${minutes} min ${rest.padStart(2, "0")} s` : `${rest} s`;
    }
  }

  // How long the verdict still takes: counted down from what the site said.
  function countDown() {
    const said = live()?.querySelector("[data-left]");
    if (!said) return;
    said.dataset.until ||= Date.now() + Number(said.dataset.left) * 1000;
    const left = Math.round((said.dataset.until - Date.now()) / 1000);
    const words = left < 100 ? `${left} s` : `${Math.round(left / 60)} min`;
    said.textContent = left <= 1 ? "Taking longer than usual" : `Verdict in about ${words}`;
  }

  const openParts = (part) => new Set([...part.querySelectorAll("details[data-part][open]")].map((each) => each.dataset.part));

  // Puts a fresh part in the place of one, with the same panels open.
  function swap(part, fresh) {
    const open = openParts(part);
    part.replaceWith(fresh);
    for (const each of fresh.querySelectorAll("details")) if (open.has(each.dataset.part)) each.open = true;
    window.htmx?.process(fresh);
  }

  // The list of evaluations and what is shared of one stand below it, and say how it is, too.
  async function refreshAround() {
    const part = document.getElementById("around");
    const response = part && await fetch(location.href, { headers: { "X-Requested-With": "fetch" } });
    if (!response?.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("around");
    await kbench.released(part);
    if (fresh && part.isConnected) swap(part, fresh);
  }

  // Follows the evaluation that the page shows now, until it is over or the page shows another.
  class Follower {
    constructor() {
      this.evaluation = live().dataset.evaluation;
      this.seq = Number(live().dataset.seq);
      this.failures = 0;
      this.poll = 0;
      this.socket = null;
      this.clock = setInterval(() => { tick(); countDown(); }, 200);
      this.recount = setInterval(() => {
        const facts = live()?.dataset ?? {};
        if (!this.poll && !document.hidden && (facts.status === "QUEUED" || "waits" in facts)) this.refresh().catch(() => {});
      }, WAITING_MS);
      this.connect();
    }

    get isWanted() {
      return live()?.dataset.evaluation === this.evaluation && !isOver();
    }

    async refresh(isLate = false) {
      const response = await fetch(live().dataset.url, { headers: { "X-Requested-With": "fetch" } });
      if (!response.ok) throw new Error(`status ${response.status}`);
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("live");
      await kbench.released(live());
      if (live()?.dataset.evaluation !== this.evaluation) return;
      const { status } = live().dataset;
      swap(live(), fresh);
      if (status !== fresh.dataset.status) refreshAround().catch(() => {});
      this.seq = Math.max(this.seq, Number(live().dataset.seq));
      announce();
      document.dispatchEvent(new CustomEvent("kbench:live"));
      // Events that came while this was fetched are shown again, if the answer is older.
      if (Number(fresh.dataset.seq) < this.seq && !isLate) return this.refresh(true);
      if (isOver()) this.stop();
      else if (this.socket?.readyState === WebSocket.OPEN) say("live", "live");
    }

    receive(event) {
      if (event.seq <= this.seq || !this.isWanted) return;
      this.seq = event.seq;
      if (event.kind === "stage") showStage(event);
      else this.refresh().catch(() => this.startPolling());
    }

    startPolling() {
      if (this.poll || !this.isWanted) return;
      say("polling", "updating every 3 s");
      this.poll = setInterval(() => {
        if (!document.hidden) this.refresh().catch(() => say("polling", "the site isn't responding; trying again"));
      }, POLL_MS);
    }

    stopPolling() {
      clearInterval(this.poll);
      this.poll = 0;
    }

    stop() {
      this.stopPolling();
      clearInterval(this.clock);
      clearInterval(this.recount);
      this.socket?.close();
    }

    connect() {
      if (!this.isWanted) return;
      const scheme = location.protocol === "https:" ? "wss" : "ws";
      this.socket = new WebSocket(`${scheme}://${location.host}/ws/evaluations/${this.evaluation}/?since=${this.seq}`);
      this.socket.onopen = () => {
        this.failures = 0;
        this.stopPolling();
        say("live", "live");
      };
      this.socket.onmessage = (message) => this.receive(JSON.parse(message.data));
      this.socket.onclose = () => {
        if (!this.isWanted) return;
        this.startPolling();
        this.failures += 1;
        setTimeout(() => this.connect(), Math.min(LAST_WAIT_MS, 500 * 2 ** this.failures));
      };
    }
  }

  let follower = null;
  kbench.follow = () => {
    if (follower && follower.evaluation === live()?.dataset.evaluation) return; // it is followed already
    follower?.stop();
    follower = null;
    if (!live()) return;
    document.dispatchEvent(new CustomEvent("kbench:live"));
    if (!isOver()) follower = new Follower();
  };
  kbench.follow();
})();
