// What a run's events change: as they happen, and again from any of them on.
import { emptyState, put } from "./state.js";
import { clock } from "./format.js";

const POLL_MS = 3000;
const LAST_WAIT_MS = 15000;

// Fetches what a run's events change, without gaps. Changes come by WebSocket, and over HTTP if the
// socket missed some. While no socket is open, it asks every few seconds.
export class Feed {
  // on: { change(change), caughtUp(), progress(payload), state(name, words) }
  constructor(config, on) {
    this.config = config;
    this.on = on;
    this.seq = 0;
    this.newest = 0; // the newest event that a socket told of
    this.failures = 0;
    this.poll = 0;
  }

  async start() {
    await this.catchUp();
    this.connect();
  }

  // Read everything after the last known event, with one request at a time.
  catchUp() {
    this.catching = this.catching || this.read().finally(() => { this.catching = null; });
    return this.catching;
  }

  async read() {
    let before;
    do {
      before = this.seq;
      const answer = await fetch(`${this.config.urls.changes}?since=${this.seq}`, { headers: { "X-Requested-With": "fetch" } });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const change = await answer.json();
      if (change.seq > this.seq || this.seq === before) this.take(change); // otherwise a socket was faster
    } while (this.seq < this.newest && this.seq > before);
    this.on.caughtUp();
  }

  take(change) {
    this.seq = Math.max(this.seq, change.seq);
    this.on.change(change);
  }

  receive(message) {
    if (message.seq === 0) {
      if (message.kind === "progress") this.on.progress(message.payload);
      return;
    }
    this.newest = Math.max(this.newest, message.seq);
    if (message.seq === this.seq + 1 && message.rows) this.take(message.rows);
    else if (message.seq > this.seq) this.catchUp().catch(() => this.startPolling()); // the layer delivers at most once
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}${this.config.urls.socket}?since=${this.seq}`);
    this.socket = socket;
    socket.onopen = () => {
      this.failures = 0;
      this.stopPolling();
      this.on.state("live", "live");
    };
    socket.onmessage = (message) => this.receive(JSON.parse(message.data));
    socket.onclose = () => {
      this.startPolling();
      this.failures += 1;
      setTimeout(() => this.connect(), Math.min(LAST_WAIT_MS, 500 * 2 ** this.failures));
    };
  }

  startPolling() {
    if (this.poll) return;
    this.on.state("polling", "updating every 3 s");
    this.poll = setInterval(() => {
      if (!document.hidden) this.catchUp().catch(() => this.on.state("polling", "the site isn't responding; trying again"));
    }, POLL_MS);
  }

  stopPolling() {
    clearInterval(this.poll);
    this.poll = 0;
  }
}

const TICK_MS = 125;
const WHOLE_S = 20; // a replay of the whole run takes this long

// The slider shows the run as it was after any event.
export class Replay {
  // `live`: the page's own state, which knows how many events there are.
  constructor(root, config, live, changed) {
    this.config = config;
    this.now = live;
    this.changed = changed;
    this.changes = [];
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

  // At a new event: the slider grows, and follows unless the past is shown.
  grow() {
    this.slider.max = this.now.seq;
    this.slider.disabled = this.play.disabled = this.now.seq === 0;
    if (!this.state) {
      this.slider.value = this.now.seq;
      this.say();
    }
  }

  // Load what the events up to `position` changed; false if the site doesn't answer.
  async read(position) {
    while (this.reading) await this.reading;
    if (this.changes.length >= position) return true;
    this.words.textContent = "loading the events";
    this.reading = fetch(`${this.config.urls.replay}?since=${this.changes.length}`, { headers: { "X-Requested-With": "fetch" } });
    try {
      const answer = await this.reading;
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      this.reading = answer.json();
      this.changes.push(...(await this.reading).changes);
    } catch {
      this.words.textContent = "The site isn't responding, so the replay can't be loaded. Try again in a moment.";
    } finally {
      this.reading = null;
    }
    return this.changes.length >= position;
  }

  async seek(position) {
    this.wanted = position;
    if (this.changes.length < position && !(await this.read(position))) return;
    if (this.wanted === position) this.show(position);
  }

  show(position) {
    if (!this.state || position < this.position) {
      this.state = emptyState(this.config);
      this.position = 0;
    }
    for (; this.position < position; this.position += 1) put(this.state, this.changes[this.position], this.changes[this.position].at);
    this.slider.value = position;
    this.say();
    this.changed();
  }

  async run() {
    const total = this.now.seq;
    if (!total || !(await this.read(total))) return;
    if (!this.state || this.position >= total) this.show(0);
    this.play.textContent = "Stop the replay";
    const stride = Math.max(1, Math.round((total * TICK_MS) / 1000 / WHOLE_S));
    this.timer = setInterval(() => {
      this.show(Math.min(total, this.position + stride));
      if (this.position >= total) this.stop();
    }, TICK_MS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.play.textContent = "Replay";
  }

  end() {
    this.stop();
    this.wanted = null;
    this.state = null;
    this.grow();
    this.changed();
  }

  say() {
    const past = Boolean(this.state);
    this.live.hidden = !past;
    document.body.classList.toggle("in-replay", past);
    const total = this.now.seq;
    if (!total) this.words.textContent = "nothing has happened yet";
    else if (!past) this.words.textContent = `${total.toLocaleString("en-US")} events; showing the newest`;
    else this.words.textContent = `after event ${this.position.toLocaleString("en-US")} of ${total.toLocaleString("en-US")}${this.state.at ? `, ${clock(this.state.at)} UTC` : ""}`;
    this.slider.setAttribute("aria-valuetext", this.words.textContent);
  }
}
