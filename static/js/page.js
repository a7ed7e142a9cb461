// For every page.
(() => {
  "use strict";

  const THEMES = { system: "follow the system", light: "light", dark: "dark" };

  function storeTheme(name) {
    try {
      if (name === "system") localStorage.removeItem("kbench-theme");
      else localStorage.setItem("kbench-theme", name);
    } catch {
      // Storage is blocked: the choice lasts as long as the page.
    }
  }

  function showTheme(button) {
    const name = document.documentElement.dataset.theme || "system";
    const label = `Colors: ${THEMES[name]}`;
    button.setAttribute("aria-label", label);
    button.title = label;
  }

  function nextTheme(button) {
    const names = Object.keys(THEMES);
    const current = document.documentElement.dataset.theme || "system";
    const name = names[(names.indexOf(current) + 1) % names.length];
    if (name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    storeTheme(name);
    showTheme(button);
    document.dispatchEvent(new CustomEvent("kbench:theme"));
  }

  async function copy(button) {
    const text = document.getElementById(button.dataset.copy).textContent.trim();
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy";
    }
    setTimeout(() => { button.textContent = before; }, 1600);
  }

  const button = document.querySelector(".theme-switch");
  button.hidden = false;
  showTheme(button);
  button.addEventListener("click", () => nextTheme(button));

  document.addEventListener("click", (event) => {
    const target = event.target.closest("[data-copy]");
    if (target) copy(target);
  });

  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-send-on-change]");
    if (form) form.requestSubmit();
  });

  // Empty fields stay out of the address that a filter form makes.
  document.addEventListener("formdata", (event) => {
    if (!event.target.matches("form[data-send-on-change]")) return;
    for (const [name, value] of [...event.formData.entries()]) {
      if (value === "") event.formData.delete(name);
    }
  });

  // A button that is replaced while it is pressed gives no click. So what replaces one waits until it is released,
  // for a second at most: no browser says the end of every press.
  const PRESSED = "button:active, a:active, summary:active, label:active";
  const PRESS_ENDS = ["pointerup", "pointercancel", "keyup", "dragend", "blur"];
  const LONGEST_PRESS_MS = 1000;
  const isPressed = (part) => part.matches(PRESSED) || part.querySelector(PRESSED) !== null;
  const released = (part) => new Promise((resolve) => {
    if (!isPressed(part)) {
      resolve();
      return;
    }
    const ended = new AbortController();
    const end = () => {
      ended.abort();
      setTimeout(resolve); // after the click
    };
    const timer = setTimeout(end, LONGEST_PRESS_MS);
    ended.signal.addEventListener("abort", () => clearTimeout(timer));
    for (const name of PRESS_ENDS) window.addEventListener(name, end, { signal: ended.signal });
  });
  // The answer to a POST is put in at once: it cannot be asked for again, and its events tell what is stored.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, requestConfig, etc } = event.detail;
    if (requestConfig.verb !== "get" || !isPressed(target)) return;
    event.detail.shouldSwap = false;
    const again = { source: requestConfig.elt, target, swap: etc?.swapOverride };
    released(target).then(() => { if (target.isConnected) htmx.ajax("GET", requestConfig.path, again); });
  });
  // The parts beside it that come with an answer are kept until then, unless fresher ones have come.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target, fragment } = event.detail;
    if (!isPressed(target)) return;
    event.detail.shouldSwap = false;
    released(target).then(() => {
      const again = { shouldSwap: true, target, fragment };
      if (!target.isConnected) return;
      htmx.trigger(target, "htmx:oobBeforeSwap", again);
      if (again.shouldSwap) htmx.swap(target, fragment.firstElementChild.outerHTML, { swapStyle: "outerHTML" });
    });
  });
  // A panel loads what it holds when it is opened. One that was opened before htmx knew of it is told so again.
  document.addEventListener("htmx:afterProcessNode", ({ target }) => {
    if (!target.matches('[hx-trigger^="toggle from:closest details"]')) return;
    target.closest("details[open]")?.dispatchEvent(new Event("toggle"));
  });
  window.kbench = { released };
})();
