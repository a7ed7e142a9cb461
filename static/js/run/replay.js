// The slider: shows the run as it was after any of its events, from the same events.
import { apply, emptyState } from "./state.js";
import { clock } from "./format.js";

const TICK_MS = 125;
const WHOLE_S = 20; // a replay of the whole run takes this long

export class Replay {
  constructor(root, config, events, changed) {
    this.config = config;
    this.events = events;
    this.changed = changed;
    this.slider = root.querySelector("input[type=range]");
    this.play = root.querySelector(".replay-play");
    this.live = root.querySelector(".replay-live");
    this.words = root.querySelector(".replay-words");
    this.state = null; // null: the page shows the newest
    this.timer = 0;
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value)));
    this.play.addEventListener("click", () => (this.timer ? this.stop() : this.run()));
    this.live.addEventListener("click", () => this.end());
  }

  // The newest event came; the slider grows, and follows unless the past is shown.
  grow() {
    this.slider.max = this.events.length;
    this.slider.disabled = this.play.disabled = this.events.length === 0;
    if (!this.state) {
      this.slider.value = this.events.length;
      this.say();
    }
  }

  seek(position) {
    if (!this.state || position < this.position) {
      this.state = emptyState(this.config);
      this.position = 0;
    }
    while (this.position < position) {
      apply(this.state, this.events[this.position]);
      this.position += 1;
    }
    this.slider.value = position;
    this.say();
    this.changed();
  }

  run() {
    if (!this.events.length) return;
    if (!this.state || this.position >= this.events.length) this.seek(0);
    this.play.textContent = "Stop the replay";
    const stride = Math.max(1, Math.round((this.events.length * TICK_MS) / 1000 / WHOLE_S));
    this.timer = setInterval(() => {
      this.seek(Math.min(this.events.length, this.position + stride));
      if (this.position >= this.events.length) this.stop();
    }, TICK_MS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.play.textContent = "Replay";
  }

  end() {
    this.stop();
    this.state = null;
    this.grow();
    this.changed();
  }

  say() {
    const past = Boolean(this.state);
    this.live.hidden = !past;
    document.body.classList.toggle("in-replay", past);
    const total = this.events.length;
    if (!total) this.words.textContent = "nothing has happened yet";
    else if (!past) this.words.textContent = `${total.toLocaleString("en-US")} events, the newest shown`;
    else this.words.textContent = `after event ${this.position.toLocaleString("en-US")} of ${total.toLocaleString("en-US")}${this.state.at ? `, ${clock(this.state.at)} UTC` : ""}`;
    this.slider.setAttribute("aria-valuetext", this.words.textContent);
  }
}
