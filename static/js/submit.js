// The submit form: drafts that survive a closed tab, files dropped on the editor, the command's twin.
(() => {
  "use strict";

  const SAVE_MS = 400;
  const form = document.getElementById("submit-form");
  const source = document.getElementById("id_source");
  const file = document.getElementById("id_file");
  const task = document.getElementById("id_task");
  const device = document.getElementById("id_device");
  const direction = document.getElementById("id_direction");
  const draftState = document.getElementById("draft-state");
  const command = document.getElementById("curl");
  const facts = JSON.parse(document.getElementById("task-facts").textContent);
  const expected = JSON.parse(document.getElementById("expected").textContent);
  let saving = 0;
  let leaving = false;

  const chosen = (name) => form.querySelector(`[name="${name}"]:checked`)?.value || "";
  const language = () => device.selectedOptions[0]?.dataset.language || "cpp";
  const key = () => `kbench-draft:${task.value}:${direction.value}:${language()}`;

  function store(name, value) {
    try {
      if (value) localStorage.setItem(name, value);
      else localStorage.removeItem(name);
      return true;
    } catch {
      return false;
    }
  }

  function stored(name) {
    try {
      return localStorage.getItem(name) || "";
    } catch {
      return "";
    }
  }

  function save() {
    const kept = store(key(), source.value);
    draftState.textContent = kept ? (source.value ? "Draft kept in this browser." : "") : "This browser keeps no drafts.";
  }

  function saveSoon() {
    clearTimeout(saving);
    saving = setTimeout(save, SAVE_MS);
  }

  // A draft belongs to a task, a direction and a language; text typed by hand is never replaced.
  let shown = "";
  function restore() {
    if (source.value && source.value !== shown) return;
    const draft = stored(key());
    source.value = draft;
    shown = draft;
    draftState.textContent = draft ? "Your draft from before is restored." : "";
  }

  function showFacts() {
    const known = facts[task.value];
    const signature = document.getElementById("signature");
    signature.hidden = !known;
    if (known) {
      signature.textContent = known.abi === "c" ? `extern "C" ${known.signature}` : `a PyTorch extension that exports ${direction.value}(…)`;
    }
    for (const option of direction.options) {
      option.disabled = Boolean(known) && !known.directions.includes(option.value);
    }
    if (direction.selectedOptions[0]?.disabled && known) direction.value = known.directions[0];
  }

  function showCommand() {
    const values = { task: task.value || "softmax", language: language(), device: device.value, mode: chosen("mode") };
    if (direction.value && direction.value !== "forward") values.direction = direction.value;
    if (chosen("written_by") === "agent") {
      values.agent = form.elements.agent.value;
      values.model = form.elements.language_model.value;
    }
    if (form.elements.private.checked) values.private = true;
    const parts = Object.entries(values).filter(([, value]) => value !== "").map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
    const suffix = language() === "cuda" ? "cu" : "cpp";
    const object = `{${parts.join(", ")}, source: $source}`.replaceAll("'", "'\\''");
    command.textContent = `jq -n --rawfile source kernel.${suffix} '${object}' |\n  curl -H "Authorization: Bearer $KBENCH_TOKEN" -H "Content-Type: application/json" -d @- ${command.dataset.host}/api/v1/submissions`;
  }

  // How long each mode takes on the chosen device, by what its like took there lately.
  function showTimes() {
    const known = expected[device.value]?.modes || {};
    for (const line of form.querySelectorAll(".took")) {
      const words = known[line.dataset.mode];
      line.textContent = words ? `takes ${words}` : "nobody has tried it here yet";
    }
    for (const line of form.querySelectorAll(".before")) {
      const words = expected[line.dataset.device]?.before;
      line.textContent = words ? `: ${words}` : "";
    }
  }

  function showAuthor() {
    for (const field of form.querySelectorAll('[data-for="agent"]')) field.hidden = chosen("written_by") !== "agent";
  }

  async function take(chosenFile) {
    if (!chosenFile) return;
    source.value = await chosenFile.text();
    file.value = "";
    const byName = chosenFile.name.endsWith(".cu") ? "cuda" : "cpp";
    if (language() !== byName) {
      const fitting = [...device.options].find((option) => option.dataset.language === byName);
      if (fitting) device.value = fitting.value;
    }
    save();
    showTimes();
    showCommand();
    draftState.textContent = `${chosenFile.name} is in the editor.`;
  }

  function indent(event) {
    if (event.key === "Escape") leaving = true;
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    else if (event.key === "Tab" && !event.shiftKey && !leaving) {
      event.preventDefault();
      source.setRangeText("    ", source.selectionStart, source.selectionEnd, "end");
      saveSoon();
    } else if (event.key !== "Shift") leaving = false;
  }

  source.addEventListener("keydown", indent);
  source.addEventListener("blur", () => { leaving = false; });
  source.addEventListener("input", saveSoon);
  file.addEventListener("change", () => take(file.files[0]));
  const editor = source.closest(".editor");
  editor.addEventListener("dragover", (event) => { event.preventDefault(); editor.classList.add("dropping"); });
  editor.addEventListener("dragleave", () => editor.classList.remove("dropping"));
  editor.addEventListener("drop", (event) => {
    event.preventDefault();
    editor.classList.remove("dropping");
    take(event.dataTransfer.files[0]);
  });
  form.addEventListener("change", (event) => {
    showFacts();
    showTimes();
    showAuthor();
    showCommand();
    if ([task, device, direction].includes(event.target)) restore();
  });
  form.addEventListener("input", showCommand);
  form.addEventListener("submit", () => {
    clearTimeout(saving);
    save();
    try {
      sessionStorage.setItem("kbench-sent", key());
    } catch {
      // Without storage there is no draft either.
    }
  });

  try {
    sessionStorage.removeItem("kbench-sent"); // whoever sees the form again has submitted nothing
  } catch {
    // Without storage there is nothing to forget.
  }
  showFacts();
  showTimes();
  showAuthor();
  showCommand();
  if (form.dataset.bound === "no") restore();
  else document.getElementById("form-errors")?.scrollIntoView({ block: "center" });
})();
