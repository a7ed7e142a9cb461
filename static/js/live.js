// Keeps a part of a page up to date: a WebSocket says when to ask for it again, at most once in its pace.
// A board isn't changed under its reader: it counts new results, and asks for its rows when the count is pressed.
(() => {
  "use strict";

  const PACE_MS = 1000;
  const IDLE_MS = 10000;
  const LAST_WAIT_MS = 15000;

  let part = document.querySelector("[data-live]");
  const counts = part.hasAttribute("data-counts");
  const pace = Number(part.dataset.pace) || PACE_MS;
  let waiting = 0;
  let failures = 0;
  let seq = -1;
  let state = "connecting";

  function say(next) {
    state = next;
    const sign = document.querySelector("[data-live-sign]"); // it may be inside the part
    if (!sign || sign.dataset.state === state) return;
    sign.dataset.state = state;
    sign.textContent = { connecting: "connecting", live: "live", polling: "updating every 10 s" }[state];
  }

  // What stands there for the first time is marked, so that it can be seen to come.
  function markFresh(known) {
    for (const row of part.querySelectorAll("[data-key]")) {
      if (!known.has(row.dataset.key)) row.classList.add("fresh");
    }
  }

  async function refresh() {
    waiting = 0;
    if (document.hidden) return;
    const response = await fetch(part.dataset.url, { headers: { "HX-Request": "true" } });
    if (!response.ok) return;
    const text = await response.text();
    await kbench.released(part);
    const focused = part.contains(document.activeElement) && document.activeElement.getAttribute("href");
    const open = [...part.querySelectorAll("details[open]")].map((each) => each.id);
    const known = new Set([...part.querySelectorAll("[data-key]")].map((each) => each.dataset.key));
    part.innerHTML = text;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) part.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    markFresh(known);
    say(state);
  }

  // Rows that replace the board bring a count of their own, which begins at 0.
  function count(event) {
    const pill = part.querySelector("[data-new]");
    const { device, task } = pill?.dataset || {};
    if (!pill || !event.ranked || (device && device !== event.device) || (task && task !== event.ranked)) return;
    const known = Number(pill.dataset.new) + 1;
    pill.dataset.new = known;
    pill.textContent = known === 1 ? "1 new result" : `${known} new results`;
    pill.hidden = false;
  }

  function soon() {
    if (!waiting && !counts) waiting = setTimeout(() => refresh().catch(() => {}), pace);
  }

  function connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const since = seq >= 0 ? `?since=${seq}` : "";
    const socket = new WebSocket(`${scheme}://${location.host}${part.dataset.live}${since}`);
    socket.onopen = () => {
      failures = 0;
      say("live");
    };
    socket.onmessage = (message) => {
      const event = JSON.parse(message.data);
      seq = Math.max(seq, event.seq || 0);
      if (counts) count(event);
      else soon();
    };
    socket.onclose = () => {
      say("polling");
      failures += 1;
      setTimeout(connect, Math.min(LAST_WAIT_MS, 500 * 2 ** failures));
    };
  }

  say("connecting");
  connect();
  if (counts) document.addEventListener("htmx:afterSettle", () => {
    part = document.querySelector("[data-live]");
    if (document.activeElement === document.body) part.querySelector(".table-wrap")?.focus({ preventScroll: true });
  });
  setInterval(soon, IDLE_MS);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });
})();
