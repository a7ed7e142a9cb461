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

  form.addEventListener("change", show);
  document.addEventListener("htmx:oobAfterSwap", show); // the site has looked which strategies can run
  show();
  document.getElementById("form-errors")?.scrollIntoView({ block: "center" });
})();
