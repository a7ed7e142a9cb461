// Makes the list of tasks one that can be searched: a combobox over the select, which keeps the choice.

const MOST_SHOWN = 60;
const select = document.getElementById("id_task");
const box = select.closest(".task-picker");
const options = [...select.options].filter((each) => each.value).map((each) => ({
  value: each.value, title: each.text, found: `${each.text} ${each.value} ${each.value.replaceAll("_", " ")}`.toLowerCase(),
}));
const input = document.createElement("input");
const list = document.createElement("ul");
let chosen = -1; // the place of the row that Enter takes

const titleOf = (value) => options.find((each) => each.value === value)?.title || "";

// What begins with the words comes first.
function matching(question) {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = options.filter((each) => words.every((word) => each.found.includes(word)));
  const rank = (each) => (words.length && (each.found.startsWith(words[0]) || each.value.startsWith(words[0])) ? 0 : 1);
  return hits.sort((one, other) => rank(one) - rank(other));
}

function mark(place) {
  const rows = [...list.querySelectorAll("[data-value]")];
  chosen = rows.length ? (place + rows.length) % rows.length : -1;
  rows.forEach((row, index) => row.classList.toggle("at", index === chosen));
  if (chosen < 0) input.removeAttribute("aria-activedescendant");
  else {
    input.setAttribute("aria-activedescendant", rows[chosen].id);
    rows[chosen].scrollIntoView({ block: "nearest" });
  }
}

function row(option, index) {
  const item = document.createElement("li");
  item.id = `task-option-${index}`;
  item.role = "option";
  item.dataset.value = option.value;
  item.setAttribute("aria-selected", String(option.value === select.value));
  const slug = document.createElement("span");
  slug.className = "faint mono";
  slug.textContent = option.value;
  item.append(option.title, " ", slug);
  return item;
}

function fill(question) {
  const hits = matching(question);
  list.replaceChildren(...hits.slice(0, question ? MOST_SHOWN : hits.length).map(row));
  if (!hits.length) {
    const none = document.createElement("li");
    none.className = "faint";
    none.role = "option";
    none.setAttribute("aria-disabled", "true");
    none.textContent = "No task matches.";
    list.append(none);
  }
  mark(question ? 0 : hits.findIndex((each) => each.value === select.value));
}

const isOpen = () => !list.hidden;

function open(question = "") {
  list.hidden = false;
  input.setAttribute("aria-expanded", "true");
  fill(question);
}

function close() {
  list.hidden = true;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
  input.value = titleOf(select.value);
}

function take(value) {
  const isOther = value !== select.value;
  select.value = value;
  if (!isOther) close();
  else select.dispatchEvent(new Event("change", { bubbles: true }));
}

function press(event) {
  const at = isOpen() && list.querySelectorAll("[data-value]")[chosen];
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const step = event.key === "ArrowDown" ? 1 : -1;
    if (isOpen()) mark(chosen < 0 && step < 0 ? -1 : chosen + step);
    else open();
  } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
    if (at) take(at.dataset.value);
  } else if (event.key === "Escape" && isOpen()) close();
  else return;
  event.preventDefault();
}

input.type = "text";
input.id = "task-search";
input.role = "combobox";
input.autocomplete = "off";
input.placeholder = "Search tasks";
for (const [name, value] of [["aria-controls", "task-options"], ["aria-autocomplete", "list"], ["aria-expanded", "false"]]) input.setAttribute(name, value);
if (select.getAttribute("aria-invalid")) input.setAttribute("aria-invalid", "true");
list.id = "task-options";
list.role = "listbox";
list.hidden = true;
list.setAttribute("aria-label", "Tasks");
box.querySelector("label").htmlFor = input.id;
select.hidden = true;
select.after(input, list);
close();

input.addEventListener("focus", () => input.select());
input.addEventListener("click", () => { if (!isOpen()) open(); });
input.addEventListener("input", (event) => { event.stopPropagation(); open(input.value); });
input.addEventListener("change", (event) => event.stopPropagation()); // the select says what was chosen
input.addEventListener("keydown", press);
input.addEventListener("blur", close);
select.addEventListener("change", close);
list.addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays
list.addEventListener("click", (event) => {
  const item = event.target.closest("[data-value]");
  if (item) take(item.dataset.value);
});
