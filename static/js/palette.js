// The palette (Ctrl+K): jumps to pages, tasks, authors, submissions and documents. And shortcuts, with their list (?).
(() => {
  "use strict";

  const PACE_MS = 120;
  const GO_MS = 1500;
  const OFF = "kbench-shortcuts-off";
  const PLACES = { h: "/", t: "/tasks/", l: "/leaderboard/", r: "/runs/", s: "/submit/", q: "/queue/", d: "/docs/" };

  const palette = document.getElementById("palette");
  const list = document.getElementById("palette-hits");
  const input = document.getElementById("palette-question");
  const shortcuts = document.getElementById("shortcuts");
  const toggle = document.getElementById("shortcuts-on");
  let timer = 0;
  let asked = 0;
  let chosen = -1;
  let answered = null; // the question that the list answers
  let isAwaited = false; // Enter came before its answer

  function choose(place) {
    const rows = [...list.children];
    chosen = rows.length ? (place + rows.length) % rows.length : -1;
    rows.forEach((row, index) => row.setAttribute("aria-selected", String(index === chosen)));
    if (chosen < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", rows[chosen].id);
      rows[chosen].scrollIntoView({ block: "nearest" });
    }
  }

  function row(hit, index) {
    const item = document.createElement("li");
    item.id = `hit-${index}`;
    item.setAttribute("role", "option");
    item.dataset.address = hit.address;
    for (const [name, text] of [["tag", hit.kind], ["title", hit.title], ["detail", hit.detail]]) {
      const part = document.createElement("span");
      part.className = name;
      part.textContent = text;
      item.append(part);
    }
    return item;
  }

  async function ask() {
    const number = ++asked;
    const question = input.value;
    const response = await fetch(`${palette.dataset.url}?q=${encodeURIComponent(question)}`);
    if (number !== asked || !response.ok) return;
    const { hits } = await response.json();
    list.replaceChildren(...hits.map(row));
    document.getElementById("palette-none").hidden = hits.length > 0;
    choose(0);
    answered = question;
    if (isAwaited && palette.open) enter();
  }

  const go = (address) => { location.href = address; };

  // Who types fast presses Enter before the list answers: then it is gone to once it does.
  function enter() {
    clearTimeout(timer);
    isAwaited = answered !== input.value;
    if (isAwaited) ask().catch(() => { isAwaited = false; });
    else if (chosen >= 0) go(list.children[chosen].dataset.address);
  }

  function soon() {
    isAwaited = false;
    clearTimeout(timer);
    timer = setTimeout(() => ask().catch(() => {}), PACE_MS);
  }

  function open() {
    if (palette.open) return;
    shortcuts.close();
    palette.showModal();
    input.select();
    soon();
  }

  input.addEventListener("input", soon);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter") enter();
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", (event) => {
    const item = event.target.closest("[data-address]");
    if (item) go(item.dataset.address);
  });
  for (const dialog of [palette, shortcuts]) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-palette]")) {
      event.preventDefault();
      open();
    }
    if (event.target.closest("[data-shortcuts]")) shortcuts.showModal();
  });

  // Single-key shortcuts work only while nobody types, and only if they are enabled.
  const isOn = () => { try { return !localStorage.getItem(OFF); } catch { return true; } };
  toggle.checked = isOn();
  toggle.addEventListener("change", () => {
    try {
      if (toggle.checked) localStorage.removeItem(OFF);
      else localStorage.setItem(OFF, "1");
    } catch {
      // Storage is blocked: the choice lasts as long as the page.
    }
  });
  const isTyping = (node) => node.closest("input, textarea, select, [contenteditable], dialog, [role=application]");
  let going = 0;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
      return;
    }
    const alone = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (!alone || !toggle.checked || isTyping(event.target)) return;
    if (event.key === "?") shortcuts.showModal();
    else if (event.key === "/") open();
    else if (going && PLACES[event.key]) go(PLACES[event.key]);
    else if (event.key !== "g") return;
    event.preventDefault();
    clearTimeout(going);
    going = event.key === "g" ? setTimeout(() => { going = 0; }, GO_MS) : 0;
  });
})();
