// The candidates, newest first, as a list of which only the rows in view exist.
import { candidate, isOver, kindOf, rankedNs, searchNs, speedupOf } from "./state.js";
import { duration, element, outcome, ratio } from "./format.js";

const ROW = 48; // pixels; the style sheet says the same
const SPARE = 6;

const FILTERS = {
  all: () => true,
  best: (row) => row.best,
  correct: (row) => kindOf(row) === "correct",
  failed: (row) => row.state === "measured" && !row.latency_ns,
  pending: (row) => kindOf(row) === "pending",
  dropped: (row) => row.state === "dropped",
};

export class Stream {
  constructor(root, open) {
    this.box = root.querySelector(".stream-box");
    this.list = root.querySelector(".stream-rows");
    this.pill = root.querySelector(".stream-pill");
    this.filter = root.querySelector("select");
    this.count = root.querySelector(".stream-count");
    this.open = open;
    this.numbers = [];
    this.chosen = 0;
    this.unseen = 0;
    this.box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => {
      const row = event.target.closest("[data-number]");
      if (!row) return;
      event.preventDefault();
      this.choose(Number(row.dataset.number));
      this.open(this.chosen);
    });
    this.pill.addEventListener("click", () => { this.box.scrollTop = 0; this.box.focus(); });
    this.filter.addEventListener("change", () => {
      this.box.scrollTop = 0;
      this.update(this.state, this.reference);
    });
  }

  update(state, reference) {
    this.state = state;
    this.reference = reference;
    const wanted = FILTERS[this.filter.value] || ((row) => row.verdict === this.filter.value);
    const before = this.numbers.length;
    const numbers = [];
    for (let number = state.candidates.length; number > 0; number -= 1) {
      const row = candidate(state, number);
      if (row && wanted(row)) numbers.push(number);
    }
    this.numbers = numbers;
    const fresh = numbers.length - before;
    if (fresh > 0 && before > 0 && this.box.scrollTop > ROW) {
      this.box.scrollTop += fresh * ROW; // what is read stays where it is
      this.unseen += fresh;
    }
    this.list.style.height = `${numbers.length * ROW}px`;
    this.count.textContent = `${numbers.length.toLocaleString("en-US")} of ${state.candidates.length.toLocaleString("en-US")}`;
    this.showPill();
    this.render();
  }

  scrolled() {
    if (this.box.scrollTop <= ROW) this.unseen = 0;
    this.showPill();
    this.render();
  }

  showPill() {
    this.pill.hidden = this.unseen <= 0;
    this.pill.textContent = `↑ ${this.unseen} new`;
  }

  render() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - SPARE);
    const last = Math.min(this.numbers.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + SPARE);
    const rows = [];
    for (let index = first; index < last; index += 1) rows.push(this.row(index));
    if (!this.numbers.length) rows.push(element("p", "stream-empty", this.state.candidates.length ? "No candidate matches this filter." : "No candidates yet. The first one will appear here."));
    this.list.replaceChildren(...rows);
    const chosen = this.list.querySelector(".chosen");
    if (chosen) this.box.setAttribute("aria-activedescendant", chosen.id);
    else this.box.removeAttribute("aria-activedescendant");
  }

  row(index) {
    const row = candidate(this.state, this.numbers[index]);
    const [kind, sign, words] = outcome(row, isOver(this.state));
    const made = element("div", `stream-row${row.number === this.chosen ? " chosen" : ""}`);
    made.id = `stream-${row.number}`;
    made.dataset.number = row.number;
    made.dataset.state = row.state;
    made.setAttribute("role", "option");
    made.setAttribute("aria-selected", row.number === this.chosen);
    made.setAttribute("aria-posinset", index + 1);
    made.setAttribute("aria-setsize", this.numbers.length);
    made.style.top = `${index * ROW}px`;
    const badge = element("span", `badge ${kind}`);
    const mark = element("span", "", sign);
    mark.setAttribute("aria-hidden", "true");
    badge.append(mark, words);
    made.append(element("span", "stream-number num", `#${row.number}`), badge);
    made.append(element("span", "stream-time num", row.latency_ns ? duration(searchNs(row)) : ""));
    made.append(element("span", "stream-speedup num", row.latency_ns ? ratio(speedupOf(row, this.reference)) : ""));
    made.append(element("span", "stream-what", this.what(row)));
    if (row.number === this.state.best) made.append(element("span", "tag stream-best", "best"));
    return made;
  }

  what(row) {
    const parents = row.parents.length ? ` of ${row.parents.map((each) => `#${each}`).join(", ")}` : "";
    const knobs = row.knobs ? Object.entries(row.knobs).map(([name, value]) => `${name}=${value}`).join(" ") : "";
    const why = row.latency_ns ? "" : row.reason;
    const ranked = rankedNs(row) ? `ranked: ${duration(rankedNs(row))}` : "";
    return [ranked, row.title || knobs, `${row.edit}${parents}`, row.model, why].filter(Boolean).join(" · ");
  }

  choose(number) {
    this.chosen = number;
    const index = this.numbers.indexOf(number);
    if (index < 0) return;
    const top = index * ROW;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + ROW > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + ROW - this.box.clientHeight;
    this.render();
  }

  move(by) {
    const index = this.numbers.indexOf(this.chosen);
    const next = index < 0 ? 0 : Math.min(Math.max(index + by, 0), this.numbers.length - 1);
    if (this.numbers.length) this.choose(this.numbers[next]);
    return this.chosen;
  }

  key(event) {
    const moves = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.move(moves[event.key]);
    else if (event.key === "Enter" && this.chosen) this.open(this.chosen);
    else return;
    event.preventDefault();
  }
}
