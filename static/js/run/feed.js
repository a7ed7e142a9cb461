// Fetches what a run's events change, without gaps. Changes come by WebSocket, and over HTTP if the
// socket missed some. While no socket is open, it asks every few seconds.

const POLL_MS = 3000;
const LAST_WAIT_MS = 15000;

export class Feed {
  // on: { change(change), progress(payload), state(name, words) }
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
      if (!document.hidden) this.catchUp().catch(() => this.on.state("polling", "the site doesn't answer; trying again"));
    }, POLL_MS);
  }

  stopPolling() {
    clearInterval(this.poll);
    this.poll = 0;
  }
}
