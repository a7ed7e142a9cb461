// Brings a run's events, in order and without a gap: stored ones in pages, new ones by WebSocket,
// and by asking every few seconds while no socket is open.

const POLL_MS = 3000;
const LAST_WAIT_MS = 15000;

export class Feed {
  // on: { event(event), run(summary), progress(payload), page(done, total), state(name, words) }
  constructor(config, on) {
    this.config = config;
    this.on = on;
    this.seq = 0;
    this.failures = 0;
    this.poll = 0;
    this.closed = false;
  }

  async start() {
    await this.catchUp();
    this.connect();
  }

  // All stored events after the last known one, page by page; one catching up at a time.
  catchUp() {
    this.catching = this.catching || this.readPages().finally(() => { this.catching = null; });
    return this.catching;
  }

  async page(since) {
    const answer = await fetch(`${this.config.urls.events}?since=${since}`, { headers: { "X-Requested-With": "fetch" } });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  }

  async readPages() {
    let next = this.page(this.seq);
    let last = Infinity;
    while (this.seq < last) {
      const page = await next;
      last = page.last;
      const newest = page.events.at(-1)?.[0] || this.seq;
      if (page.events.length && newest < last) next = this.page(newest); // it comes while this one is folded
      for (const [seq, kind, at, payload] of page.events) this.take({ seq, kind, at, payload });
      this.on.run(page.run);
      this.on.page(this.seq, last);
      if (!page.events.length) break;
    }
  }

  take(event) {
    if (event.seq <= this.seq) return;
    this.seq = event.seq;
    this.on.event(event);
  }

  receive(message) {
    if (message.seq === 0) {
      if (message.kind === "progress") this.on.progress(message.payload);
    } else if (message.seq > this.seq + 1) {
      this.catchUp().catch(() => this.startPolling()); // a gap: the layer delivers at most once
      return;
    } else {
      this.take({ ...message, at: Date.parse(message.at) });
    }
    if (message.run) this.on.run(message.run);
  }

  connect() {
    if (this.closed) return;
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
    if (this.poll || this.closed) return;
    this.on.state("polling", "asking every 3 s");
    this.poll = setInterval(() => {
      if (!document.hidden) this.catchUp().catch(() => this.on.state("polling", "the site does not answer; trying again"));
    }, POLL_MS);
  }

  stopPolling() {
    clearInterval(this.poll);
    this.poll = 0;
  }
}
