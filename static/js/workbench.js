// The workbench: the editor and what it keeps, the task on one side, attempts and the console on the other.
import { alike, draft, forgetDraft, keep, kept, newestDraft, saveDraft } from "./drafts.js";
import { reveal, sideBySide } from "./panes.js";
import "./task_picker.js";

const SAVE_MS = 400;
const MOST_BYTES = 1 << 20; // of a file, as the site has it
const TWICE_MS = 1000; // who presses a key so soon again means the submission that was just made
const form = document.getElementById("submit-form");
const source = document.getElementById("id_source");
const file = document.getElementById("id_file");
const more = document.getElementById("id_more");
const others = document.getElementById("other-files");
const task = document.getElementById("id_task");
const device = document.getElementById("id_device");
const direction = document.getElementById("id_direction");
const picked = document.getElementById("id_language");
const brief = document.getElementById("brief");
const consoleBox = document.getElementById("console");
const attempts = document.getElementById("attempts");
const draftState = document.getElementById("draft-state");
const command = document.getElementById("curl");
const directions = JSON.parse(document.getElementById("directions").textContent); // of tasks that have not forward alone
const expected = JSON.parse(document.getElementById("expected").textContent);

let editor = null; // until it has loaded, and where it cannot, the textarea itself
let saving = 0;
let base = form.dataset.opening; // what the text was begun from
const openedWith = source.value;
const openedFiles = files();
let pristine = openedWith; // the text as it was put in: nobody's work yet
let held = ""; // the key under which the text is kept
let sent = "";
let sentMode = "";
let answeredAt = 0; // when the site last took a text
let asked = ""; // the mode that a key asks for, whichever is chosen
let told = ""; // the evaluation whose end the list of attempts shows
let opened = new Set(); // attempts whose differences are shown
let isNamed = form.dataset.bound === "yes" || new URLSearchParams(location.search).has("device"); // the device, by somebody

const shownSubmission = () => consoleBox.querySelector("[data-submission]")?.dataset.submission;
const chosen = (name) => form.querySelector(`[name="${name}"]:checked`)?.value || "";
const language = () => picked.value || device.selectedOptions[0]?.dataset.language || "cpp";
const key = () => `${task.value}:${direction.value}:${language()}`;
// As gpu_runner/data/static/module_device.py, which decides where no device is named, but for what it leaves to a parser.
const needsGpu = (text) => /^\s*(?:import|from)\s+(?:triton|cupy|cutlass|tilelang|cuda\.tile|numba\.cuda)\b/m.test(text)
  || /^\s*from\s+(?:numba\s+import\s+.*\bcuda|cuda\s+import\s+.*\btile)\b|\bcuda_sources\s*=/m.test(text);
const isShown = (one) => one.text === source.value && alike(one.files, files());
const isTouched = () => source.value.trim() !== "" && source.value !== pristine;
const say = (text) => { draftState.textContent = text; };

// The files beside the source, without those to remove; undefined if there are none.
function files() {
  const texts = JSON.parse(form.elements.beside.value || "{}");
  for (const box of others.querySelectorAll("[name=drop]:checked")) delete texts[box.value];
  return Object.keys(texts).length ? { entry: form.elements.entry.value, texts } : undefined;
}

function showFiles({ entry = "", texts = {} } = {}) {
  const names = Object.keys(texts).sort();
  const list = others.querySelector("fieldset");
  const legend = list.querySelector("legend");
  form.elements.entry.value = entry;
  form.elements.beside.value = JSON.stringify(texts);
  others.querySelector("summary").textContent = `Add files${names.length ? ` (${names.length} here)` : ""}`;
  legend.textContent = `${entry || "The source"} comes with these. Check the ones to remove.`;
  list.hidden = !names.length;
  list.replaceChildren(legend, ...names.map((name) => {
    const label = Object.assign(document.createElement("label"), { className: "check" });
    const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "drop", value: name });
    label.append(box, Object.assign(document.createElement("span"), { className: "mono", textContent: name }));
    return label;
  }));
}

// Files that were chosen come to the others, so that the draft has them. Those that the site refuses stay: it says why.
async function addFiles() {
  const chosenFiles = [...more.files];
  if (chosenFiles.some((each) => each.size > MOST_BYTES)) return;
  const added = {};
  try {
    const text = new TextDecoder("utf-8", { fatal: true });
    for (const each of chosenFiles) added[each.name] = text.decode(await each.arrayBuffer());
  } catch { return; }
  const { entry, texts = {} } = files() || {};
  for (const [name, text] of Object.entries(added)) {
    const same = Object.keys(texts).filter((each) => each.split("/").pop() === name);
    texts[same.length === 1 ? same[0] : name] = text;
  }
  more.value = "";
  showFiles({ entry, texts });
  changed();
}

// Somebody has worked at the files.
function changed() {
  pristine = null;
  save();
}

// What the page opened with is put in for nobody's work; a draft counts as work.
function show(text, { from = base, untouched = true, files: beside } = {}) {
  showFiles(beside);
  base = from;
  pristine = untouched ? text : null;
  source.value = text;
  editor?.set(text);
  showKept();
}

function save() {
  clearTimeout(saving);
  saving = 0;
  if (!isTouched()) return;
  say(saveDraft(held, source.value, base, files()) ? "Kept in this browser until you submit." : "This browser can't save drafts: copy your text before you leave.");
}

// A Python module for a GPU is measured on one, unless somebody has named a device.
function guess() {
  if (isNamed || picked.value !== "python" || device.selectedOptions[0]?.dataset.language === "cuda" || !needsGpu(source.value)) return;
  const gpu = [...device.options].find((option) => option.dataset.language === "cuda");
  if (gpu) go(gpu.value);
}

function go(wanted) {
  device.value = wanted;
  device.dispatchEvent(new Event("change", { bubbles: true }));
}

function typed() {
  pristine = pristine === source.value ? pristine : null;
  if (!source.value.trim()) {
    forgetDraft(held);
    say("");
  }
  clearTimeout(saving);
  saving = setTimeout(save, SAVE_MS);
  guess();
}

// Earlier texts of this task: each can be had back, and takes the place of the present one, which is kept in turn.
function showKept() {
  const list = document.getElementById("kept-texts");
  const rows = kept(held).filter((each) => !isShown(each));
  document.getElementById("kept").hidden = !rows.length;
  list.replaceChildren(...rows.map((each) => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "link-button";
    const lines = each.text.trimEnd().split("\n");
    button.textContent = `${new Date(each.at).toLocaleString()}, ${lines.length} lines: ${lines[0].slice(0, 60)}`;
    button.addEventListener("click", () => {
      const isKept = isTouched();
      replace(each.text, "kept", each.files);
      say(`The earlier draft is back. ${isKept ? whereOld() : ""}`);
    });
    item.append(button);
    return item;
  }));
}

// The editor can undo that a text was replaced; the plain field can't.
const whereOld = () => `The text it replaced is under “Earlier drafts” below${editor ? "; Ctrl+Z brings it back" : ""}.`;

// Puts another text in; what was there is kept, if anybody worked on it.
function replace(text, from, beside) {
  save();
  if (isTouched()) keep(held, source.value, files());
  show(text, { from, untouched: from !== "kept", files: beside });
  if (from === "kept") saveDraft(held, text, from, beside);
  else forgetDraft(held);
  editor?.focus();
}

const starter = () => {
  const data = document.getElementById(picked.value === "python" ? "python-starter" : "starter");
  return data ? JSON.parse(data.textContent) : "";
};

// The text of the task, direction and language that are chosen now.
function turn(isOtherTask) {
  save();
  if (isOtherTask) history.replaceState(null, "", task.value ? `?task=${encodeURIComponent(task.value)}` : location.pathname);
  held = key();
  editor?.speak(language());
  const found = draft(held);
  if (found && !isShown(found)) {
    show(found.text, { from: found.base, untouched: false, files: found.files });
    sayRestored();
  } else if (!isTouched()) {
    show(starter(), { from: "starter" });
    say("");
  } else if (isOtherTask) say("Your text is unchanged. This task's starter is under Start from.");
  showKept();
}

// What the page was opened with: a draft that was begun from it goes on, any other is put aside.
function open() {
  held = key();
  const found = draft(held);
  const opening = form.dataset.opening;
  if (form.dataset.bound === "yes") {
    pristine = null; // refused: the text came back with the page
    save();
  } else if (!found) {
    if (!source.value) show(starter(), { from: "starter" });
  } else if (!opening || found.base === opening) {
    show(found.text, { from: found.base, untouched: false, files: found.files });
    sayRestored();
  } else if (!isShown(found)) {
    keep(held, found.text, found.files);
    say("Your earlier draft is under “Earlier drafts” below.");
  }
  showKept();
}

function sayRestored() {
  const discard = document.createElement("button");
  discard.type = "button";
  discard.className = "link-button";
  discard.textContent = "Discard it";
  discard.addEventListener("click", () => {
    const isOpening = base === form.dataset.opening && openedWith;
    replace(isOpening ? openedWith : starter(), base, isOpening ? openedFiles : undefined);
    say("Discarded. Your draft is under “Earlier drafts” below.");
  });
  say("Restored your unsent draft. ");
  draftState.append(discard);
}

// Without a source of its own the page goes on with the newest draft: of its task, or of any if it was opened for none.
function comeBack() {
  const asked = new URLSearchParams(location.search);
  if (form.dataset.bound === "yes" || form.dataset.opening || !(task.value || asked.size === 0)) return;
  const fitting = (words) => [device.selectedOptions[0], ...(isNamed ? [] : device.options)]
    .find((option) => words === "python" || option?.dataset.language === words);
  const newest = newestDraft((name, way, words) => (task.value ? name === task.value : [...task.options].some((each) => each.value === name))
    && fitting(words) && (!asked.has("direction") || way === direction.value));
  if (!newest || newest.join(":") === held) return;
  const isOtherTask = task.value !== newest[0];
  [task.value, direction.value] = newest;
  picked.value = newest[2] === "python" ? "python" : "";
  device.value = fitting(newest[2]).value;
  (isOtherTask ? task : picked).dispatchEvent(new Event("change", { bubbles: true }));
}

function showDirections() {
  const known = directions[task.value] || ["forward"];
  for (const option of direction.options) option.disabled = !known.includes(option.value);
  if (!known.includes(direction.value)) direction.value = known[0];
  direction.closest(".field").hidden = known.length < 2;
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
  const suffix = { cuda: "cu", python: "py" }[language()] || "cpp";
  const object = `{${parts.join(", ")}, source: $source}`.replaceAll("'", "'\\''");
  command.textContent = `jq -n --rawfile source kernel.${suffix} '${object}' |\n  curl -H "Authorization: Bearer $KBENCH_TOKEN" -H "Content-Type: application/json" -d @- ${command.dataset.host}/api/v1/submissions`;
}

// How long each mode takes on the chosen device, by what its like took there lately.
function showTimes() {
  const known = expected[device.value]?.modes || {};
  for (const line of form.querySelectorAll(".took")) {
    const words = known[line.dataset.mode];
    line.textContent = words ? `Takes ${words}.` : "";
  }
  for (const line of form.querySelectorAll("[data-queue]")) line.hidden = line.dataset.queue !== device.value;
  for (const line of form.querySelectorAll(".before")) {
    const words = expected[line.dataset.device]?.before;
    line.textContent = words ? `: ${words}` : "";
  }
}

function goToField(name) {
  if (name === "id_source") return editor.focus();
  const field = document.getElementById({ id_task: "task-search" }[name] || name);
  const folded = field?.closest("details");
  if (folded) folded.open = true;
  field?.focus();
}

function showAuthor() {
  for (const field of form.querySelectorAll('[data-for="agent"]')) field.hidden = chosen("written_by") !== "agent";
}

// Python runs on every device; what is compiled, on those of its own language.
function pick(wanted) {
  const value = wanted === "python" ? "python" : "";
  if (picked.value === value) return;
  picked.value = value;
  picked.dispatchEvent(new Event("change", { bubbles: true }));
}

async function take(chosenFile) {
  if (!chosenFile) return;
  const text = await chosenFile.text();
  file.value = "";
  const byName = { cu: "cuda", py: "python" }[chosenFile.name.split(".").pop()] || "cpp";
  pick(byName);
  if (language() !== byName) {
    const fitting = [...device.options].find((option) => option.dataset.language === byName);
    if (fitting) go(fitting.value);
  }
  replace(text, "file", files());
  pristine = null;
  save();
  guess();
  say(`${chosenFile.name} is in the editor.`);
}

// A kernel's text, or null where the site does not give it.
async function sourceAt(address) {
  try {
    const answer = await fetch(address);
    return answer.ok ? await answer.text() : null;
  } catch {
    return null;
  }
}

// "Start from this" brings a source into the editor without leaving the page; "Restore" its verdict, too.
async function startFrom(link) {
  const text = link.dataset.starter === undefined ? await sourceAt(link.dataset.source) : starter();
  if (text === null) return say(`${link.dataset.name} couldn't be loaded; the editor is unchanged.`);
  pick(link.dataset.language);
  const isKept = isTouched();
  replace(text, link.dataset.opening);
  guess();
  reveal("editor");
  say(`Started from ${link.dataset.name}. ${isKept ? whereOld() : ""}`);
  if (attempts.contains(link)) await htmx.ajax("GET", link.href, { target: "#console", swap: "innerHTML" });
}

// Sends the text in a mode. One's own attempt that is unchanged is measured again, and not entered twice.
function run(mode) {
  const isSame = source.value.trim() && source.value === pristine && !form.elements.more.value && !form.querySelector('[name="drop"]:checked');
  const again = isSame && base.startsWith("submission:") && !form.elements.private.checked
    && attempts.querySelector(`form[data-rank="${CSS.escape(base.slice("submission:".length))}"]`);
  if (again && sentMode === mode && Date.now() - answeredAt < TWICE_MS) return;
  asked = mode;
  if (again) {
    sentMode = again.elements.mode.value = mode;
    again.requestSubmit();
    again.elements.mode.value = "ranked"; // what its button means
  } else form.requestSubmit();
  asked = "";
}

// A verdict changes the attempts, and how much may still be entered.
const isOver = () => ["FINISHED", "CANCELLED"].includes(consoleBox.querySelector("#live")?.dataset.status);

function tell() {
  const live = consoleBox.querySelector("#live");
  if (!isOver() || live.dataset.evaluation === told) return;
  told = live.dataset.evaluation;
  htmx.trigger(document, "kbench:verdict");
}

function showCurrent() {
  for (const row of attempts.querySelectorAll("[data-attempt]")) {
    if (row.dataset.attempt === shownSubmission()) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
}

// What compiler and profiler said of lines is marked in the text that they spoke of, and in none else.
function marks() {
  const data = document.getElementById("diagnostics");
  if (editor && data && base === `submission:${shownSubmission()}`) editor.mark(JSON.parse(data.textContent));
}

async function loadEditor() {
  try {
    const { createEditor } = await import("./editor.js");
    const label = document.querySelector('label[for="id_source"]');
    label.id = "source-label";
    label.removeAttribute("for");
    editor = createEditor(source, {
      nonce: form.dataset.nonce, label: "source-label", description: "source-help", language: language(), onRun: run,
    });
    marks();
    const nobody = [document.body, source].includes(document.activeElement);
    if (nobody && sideBySide() && form.dataset.bound === "no") editor.focus();
  } catch {
    say("The editor didn't load, but this plain field works the same way.");
  }
  form.dataset.editor = editor ? "yes" : "no";
}

const showAll = () => [showDirections, showTimes, showAuthor, showCommand].forEach((show) => show());

source.addEventListener("input", typed);
// From wherever the focus is, such as the mode that was just chosen; the editor has answered its own already.
document.addEventListener("keydown", (event) => {
  const isAsked = event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat;
  if (!isAsked || event.defaultPrevented || event.target.closest("dialog")) return;
  event.preventDefault(); // a field's own Enter would submit once more
  run(event.altKey ? chosen("mode") : event.shiftKey ? "ranked" : "quick");
});
file.addEventListener("change", () => take(file.files[0]));
more.addEventListener("change", addFiles);
const box = source.closest(".editor");
box.addEventListener("dragover", (event) => { event.preventDefault(); box.classList.add("dropping"); });
box.addEventListener("dragleave", () => box.classList.remove("dropping"));
box.addEventListener("drop", (event) => {
  event.preventDefault();
  event.stopPropagation();
  box.classList.remove("dropping");
  take(event.dataTransfer.files[0]);
}, { capture: true });
for (const moment of ["pagehide", "visibilitychange"]) window.addEventListener(moment, save, { capture: true });
form.addEventListener("change", (event) => {
  if (event.target === device && event.isTrusted) isNamed = true;
  if (event.target.name === "drop") changed();
  showAll();
  // Without a task there is no starter to wait for; with one its brief brings it.
  if ([task, device, picked, direction].includes(event.target)) turn(event.target === task);
  if (event.target === picked) guess();
});
form.addEventListener("input", showCommand);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-opening]");
  const place = event.target.closest('a[href^="#L-"], a[href^="#id_"]');
  if (link && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    startFrom(link).catch(() => { location.href = link.href; });
  } else if (place && editor) {
    event.preventDefault();
    reveal("editor");
    if (place.hash.startsWith("#L-")) editor.goTo(Number(place.hash.slice(3)));
    else goToField(place.hash.slice(1));
  }
});
document.addEventListener("htmx:configRequest", (event) => {
  const { elt, parameters } = event.detail;
  if (elt !== form) return;
  const mode = asked || chosen("mode");
  if (sent === source.value && sentMode === mode && Date.now() - answeredAt < TWICE_MS) return event.preventDefault();
  parameters.mode = mode;
  save();
  sent = source.value;
  sentMode = mode;
});
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target !== attempts) return;
  opened = new Set([...attempts.querySelectorAll("details[open]")].map((each) => each.dataset.part));
});
document.addEventListener("htmx:afterSwap", (event) => {
  const { target } = event.detail;
  if (target.id === "refusal") {
    sent = null; // pressing again sends it again
    say("");
    save();
  }
  if (target === brief && !isTouched() && !draft(held)) show(starter(), { from: "starter" });
  if (target !== attempts) return;
  const here = JSON.parse(document.getElementById("expected-here")?.textContent || "{}");
  if (expected[here.device]) expected[here.device].modes = here.modes; // a verdict may be the first of its mode
  showTimes();
  for (const each of attempts.querySelectorAll("details")) if (opened.has(each.dataset.part)) each.open = true;
  showCurrent();
});
// What the console shows has reached the site: the draft has served, unless it has been changed since.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target !== consoleBox || !consoleBox.querySelector("#live")) return;
  answeredAt = Date.now();
  if (event.detail.requestConfig.elt === form) {
    if (sent === source.value) {
      forgetDraft(held);
      pristine = source.value;
      say("Submitted. The site has this version.");
    }
    base = `submission:${shownSubmission()}`;
  }
  if (event.detail.requestConfig.verb === "post") reveal("verdict");
  if (document.activeElement === document.body && sideBySide()) editor?.focus();
  document.getElementById("verdict-pane").scrollTop = 0;
  showCurrent();
  marks();
  kbench.follow();
});
document.addEventListener("htmx:sendError", () => say("The site isn't responding. Your text is kept in this browser."));
document.addEventListener("htmx:responseError", () => say("The site refused the request. Your text is kept in this browser."));
document.addEventListener("kbench:live", () => { marks(); tell(); });

showAll();
open();
showCurrent();
if (isOver()) told = consoleBox.querySelector("#live").dataset.evaluation; // the page came with it
loadEditor();
document.addEventListener("DOMContentLoaded", comeBack); // the brief of another task can be asked for then
if (form.dataset.bound === "yes") document.getElementById("form-errors")?.scrollIntoView({ block: "center" });
