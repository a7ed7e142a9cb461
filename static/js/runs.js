// Keeps the list of runs up to date while one of them is running.
(() => {
  "use strict";

  const EVERY_MS = 5000;

  async function refresh() {
    const table = document.querySelector(".run-table");
    const isInUse = () => table.contains(document.activeElement);
    if (document.hidden || !table || table.dataset.moving !== "yes" || isInUse()) return;
    const answer = await fetch(location.href, { headers: { "HX-Request": "true" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".run-table");
    await kbench.released(table);
    if (fresh && !isInUse()) table.replaceWith(fresh);
  }

  setInterval(() => refresh().catch(() => {}), EVERY_MS); // the next time may be better
})();
