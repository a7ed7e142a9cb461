// The table of tasks: select all shown, count what is selected, show the fields that an action needs.
(() => {
  "use strict";

  const form = document.getElementById("bulk");
  const action = document.getElementById("b-action");
  const boxes = () => [...form.querySelectorAll('input[name="task"]')];

  function count() {
    const all = boxes();
    const selected = all.filter((box) => box.checked).length;
    const place = form.querySelector("[data-selected-count]");
    if (place) place.textContent = `${selected} selected`;
    const link = form.querySelector("[data-select-all]");
    if (link) link.textContent = selected && selected === all.length ? "Select none" : "Select all shown";
  }

  function showFields() {
    for (const field of form.querySelectorAll("[data-for]")) {
      field.hidden = !field.dataset.for.split(" ").includes(action.value);
    }
  }

  form.addEventListener("click", (event) => {
    if (!event.target.closest("[data-select-all]")) return;
    event.preventDefault();
    const all = boxes();
    const selected = !all.every((box) => box.checked);
    for (const box of all) box.checked = selected;
    count();
  });
  form.addEventListener("change", () => { count(); showFields(); });
  document.addEventListener("htmx:afterSettle", count);
  count();
  showFields();
})();
