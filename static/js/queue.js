// Keeps the queues up to date: a WebSocket says when to ask, at most once a second.
(() => {
  "use strict";

  const PACE_MS = 1000;
  const IDLE_MS = 10000;
  const LAST_WAIT_MS = 15000;

  const queues = document.getElementById("queues");
  const sign = document.getElementById("queue-live");
  let waiting = 0;
  let failures = 0;
  let seq = -1;

  function say(state, words) {
    if (sign.dataset.state === state) return;
    sign.dataset.state = state;
    sign.textContent = words;
  }

  async function refresh() {
    waiting = 0;
    if (document.hidden) return;
    const response = await fetch(queues.dataset.url, { headers: { "HX-Request": "true" } });
    if (!response.ok) return;
    const text = await response.text();
    await kbench.released(queues);
    const focused = document.activeElement && queues.contains(document.activeElement) && document.activeElement.getAttribute("href");
    const open = [...queues.querySelectorAll("details[open]")].map((each) => each.id);
    queues.innerHTML = text;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) queues.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }

  function soon() {
    if (!waiting) waiting = setTimeout(() => refresh().catch(() => {}), PACE_MS);
  }

  function connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const since = seq >= 0 ? `?since=${seq}` : "";
    const socket = new WebSocket(`${scheme}://${location.host}/ws/queue/${since}`);
    socket.onopen = () => {
      failures = 0;
      say("live", "live");
    };
    socket.onmessage = (message) => {
      seq = Math.max(seq, JSON.parse(message.data).seq || 0);
      soon();
    };
    socket.onclose = () => {
      say("polling", "asking every 10 s");
      failures += 1;
      setTimeout(connect, Math.min(LAST_WAIT_MS, 500 * 2 ** failures));
    };
  }

  connect();
  setInterval(soon, IDLE_MS);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });
})();
