// Above a long list of boxes: a search, its tags, and buttons that choose all shown or none.

const place = document.querySelector("[data-check-list]");

function made(tag, attributes, ...children) {
  const element = Object.assign(document.createElement(tag), attributes);
  element.append(...children);
  return element;
}

function start(list) {
  const rows = [...list.querySelectorAll("label")].map((label) => ({
    label, box: label.querySelector("input"), text: label.textContent.toLowerCase().replaceAll("_", " "),
    tags: [...label.querySelectorAll(".tag")].map((tag) => tag.textContent),
  }));
  const search = made("input", { type: "search", placeholder: "Search tasks", ariaLabel: "Search tasks" });
  const tags = [...new Set(rows.flatMap((row) => row.tags))].sort();
  const tag = made("select", { ariaLabel: "Tag" }, new Option("Any tag", ""), ...tags.map((name) => new Option(name, name)));
  const all = made("button", { type: "button", className: "button small", textContent: "Select all shown" });
  const none = made("button", { type: "button", className: "button small", textContent: "Select none" });
  const count = made("span", { className: "small muted", role: "status" });
  list.before(made("div", { className: "row" }, search, tag), made("div", { className: "row" }, all, none, count));

  const say = () => {
    const shown = rows.filter((row) => !row.label.hidden).length;
    const chosen = rows.filter((row) => row.box.checked).length;
    count.textContent = `${chosen} selected, ${shown} of ${rows.length} shown`;
  };
  const filter = () => {
    const words = search.value.toLowerCase().replaceAll("_", " ").split(/\s+/);
    for (const row of rows) {
      row.label.hidden = !words.every((word) => row.text.includes(word)) || !(tag.value === "" || row.tags.includes(tag.value));
    }
    say();
  };
  const choose = (wanted, checked) => {
    for (const row of rows.filter(wanted)) row.box.checked = checked;
    say();
  };
  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  tag.addEventListener("change", filter);
  all.addEventListener("click", () => choose((row) => !row.label.hidden, true));
  none.addEventListener("click", () => choose(() => true, false));
  list.addEventListener("change", say);
  filter(); // a browser may have kept what was searched
}

if (place) start(place.querySelector(".check-list"));
