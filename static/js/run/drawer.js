// The drawer with one candidate. Its content is the same fragment of which a whole page is made.

export class Drawer {
  constructor(node, address, move) {
    this.node = node;
    this.body = node.querySelector(".drawer-body");
    this.address = address;
    this.move = move;
    this.number = 0;
    node.querySelector(".drawer-close").addEventListener("click", () => this.close());
    for (const button of node.querySelectorAll("[data-move]")) button.addEventListener("click", () => this.step(Number(button.dataset.move)));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.number) this.close();
    });
    this.body.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-candidate]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.open(Number(link.dataset.candidate));
    });
  }

  link(number) {
    return this.address.replace("/0/", `/${number}/`);
  }

  async open(number) {
    if (!number) return;
    const cameFrom = this.number ? this.from : document.activeElement;
    this.from = cameFrom;
    const same = this.number === number;
    this.number = number;
    this.node.hidden = false;
    document.body.classList.add("with-drawer");
    this.node.querySelector(".drawer-title").textContent = `Candidate ${number}`;
    this.node.querySelector(".drawer-page").href = this.link(number);
    if (!same) this.body.replaceChildren(document.createTextNode("Loading the candidate …"));
    history.replaceState(null, "", `#candidate-${number}`);
    await this.read(number, same);
    if (!same) this.node.querySelector(".drawer-title").focus({ preventScroll: true });
  }

  async read(number, quiet) {
    try {
      const answer = await fetch(this.link(number), { headers: { "X-Requested-With": "fetch", "HX-Request": "true" } });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const text = await answer.text();
      if (this.number !== number) return;
      const open = quiet ? [...this.body.querySelectorAll("details[open]")].map((each) => each.dataset.part) : [];
      this.body.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
      for (const part of open) this.body.querySelector(`details[data-part="${CSS.escape(part)}"]`)?.setAttribute("open", "");
    } catch (error) {
      if (this.number === number && !quiet) this.body.textContent = `The candidate couldn't be loaded (${error.message}). Open it as a page, or try again.`;
    }
  }

  // Read again what is open, when something happened to it.
  refresh(number) {
    if (this.number === number) this.read(number, true);
  }

  step(by) {
    const next = this.move(by);
    if (next) this.open(next);
  }

  close() {
    this.number = 0;
    this.node.hidden = true;
    document.body.classList.remove("with-drawer");
    history.replaceState(null, "", location.pathname + location.search);
    this.from?.focus?.();
  }
}
