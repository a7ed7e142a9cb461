// The form that starts a run: shows what the chosen strategy, seed and verifiers need, and no more.
(() => {
  "use strict";

  const form = document.getElementById("run-form");
  const directions = JSON.parse(document.getElementById("task-directions").textContent);
  const chosen = (name) => form.querySelector(`[name="${name}"]:checked`);

  function show() {
    const strategy = chosen("strategy");
    const use = chosen("verifier_use")?.value || "off";
    for (const part of form.querySelectorAll("[data-strategy]")) part.hidden = part.dataset.strategy !== strategy?.value;
    for (const part of form.querySelectorAll('[data-needs="models"]')) part.hidden = strategy?.dataset.models !== "yes";
    for (const part of form.querySelectorAll('[data-needs="verifiers"]')) part.hidden = use === "off";
    for (const part of form.querySelectorAll("[data-use]")) part.hidden = part.dataset.use !== use;
    for (const part of form.querySelectorAll("[data-seed]")) part.hidden = part.dataset.seed !== chosen("seed_kernel")?.value;
    const task = form.elements.task.value;
    const direction = form.elements.direction;
    for (const option of direction.options) option.disabled = Boolean(directions[task]) && !directions[task].includes(option.value);
    if (direction.selectedOptions[0]?.disabled) direction.value = directions[task][0];
  }

  // A cap on money can't be checked for a language model without a price: the usual cap goes then.
  const usd = form.elements.usd;
  function capMoney() {
    const unpriced = form.querySelector('[name="models"][data-priced="no"]:checked');
    if (unpriced && usd.value === usd.defaultValue) usd.value = "";
    else if (!unpriced && !usd.value && !usd.dataset.typed) usd.value = usd.defaultValue;
  }
  usd.addEventListener("input", () => { usd.dataset.typed = "yes"; });

  // What was entered comes back with "Back": the browser doesn't keep pages of the site.
  const place = `kbench-run-form ${location.pathname}${location.search}`;
  const fields = () => [...form.elements].filter((each) => each.name && each.name !== "csrfmiddlewaretoken");
  addEventListener("pagehide", () => sessionStorage.setItem(place, JSON.stringify([...new FormData(form)])));
  function bringBack() {
    if (performance.getEntriesByType("navigation")[0]?.type !== "back_forward") return;
    const kept = JSON.parse(sessionStorage.getItem(place) || "[]");
    if (!kept.length) return;
    for (const each of fields()) {
      const values = kept.filter(([name]) => name === each.name).map(([, value]) => value);
      if (each.type === "checkbox" || each.type === "radio") each.checked = values.includes(each.value);
      else if (values.length) [each.value] = values;
    }
  }

  // The site has looked which strategies can run; what was chosen meanwhile stays chosen.
  let before = "";
  document.addEventListener("htmx:oobBeforeSwap", () => { before = chosen("strategy")?.value; });
  document.addEventListener("htmx:oobAfterSwap", () => {
    const same = [...form.querySelectorAll('[name="strategy"]')].find((each) => each.value === before);
    if (same) {
      same.disabled = false;
      same.checked = true;
    }
    show();
  });
  form.addEventListener("change", (event) => {
    if (event.target.name === "models") capMoney();
    show();
  });
  bringBack();
  show();
  document.getElementById("form-errors")?.scrollIntoView({ block: "center" });
})();
