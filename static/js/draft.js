// The workbench: line numbers, keys, marks of faults, and a warning before unsaved text is lost.
(() => {
  "use strict";

  const form = document.getElementById("draft-form");
  const text = document.getElementById("id_text");
  if (!form || !text) return;
  const gutter = form.querySelector(".gutter");
  const save = document.getElementById("save");
  const path = form.elements.path.value;
  const state = () => document.getElementById("draft-status");
  // What was typed, or restored by the browser, before this runs is unsaved.
  let stored = document.querySelector("[data-unsaved]") ? null : text.defaultValue;
  let sent = "";
  let leaving = false; // Escape was pressed: Tab leaves the editor
  let going = false; // the page is being left on purpose
  let numbered = 0;

  const isChanged = () => stored === null || text.value !== stored;

  function wrongLines() {
    const data = document.getElementById("fault-lines");
    return new Set(data ? JSON.parse(data.textContent) : []);
  }

  function number(always) {
    const count = text.value.split("\n").length;
    if (always || count !== numbered) {
      const wrong = wrongLines();
      gutter.replaceChildren(...Array.from({ length: count }, (_, index) => {
        const line = document.createElement("span");
        line.textContent = index + 1;
        if (wrong.has(index + 1)) line.className = "wrong";
        return line;
      }));
      numbered = count;
    }
    gutter.scrollTop = text.scrollTop;
  }

  // Makes the gutter as high as the text: a textarea may be dragged higher.
  function fit() {
    gutter.style.height = `${text.offsetHeight}px`;
    gutter.scrollTop = text.scrollTop;
  }

  function goTo(line) {
    const lines = text.value.split("\n");
    const index = Math.min(Math.max(line, 1), lines.length) - 1;
    const start = lines.slice(0, index).reduce((length, each) => length + each.length + 1, 0);
    text.focus();
    text.setSelectionRange(start, start + lines[index].length);
    text.scrollTop = Math.max((text.scrollHeight / lines.length) * (index - 5), 0);
    text.scrollLeft = 0;
    number(false);
  }

  function say(words) {
    const place = document.getElementById("save-words");
    if (place) place.textContent = words;
  }

  function sayUnsaved(words) {
    const notice = document.createElement("p");
    notice.className = "notice bad";
    notice.textContent = `Not saved. Your text is still in the editor. ${words}`;
    state().replaceChildren(notice);
  }

  function keys(event) {
    if (event.key === "Escape") leaving = true;
    else if (event.key === "Tab" && !event.shiftKey && !leaving && !text.readOnly) {
      event.preventDefault();
      // The only way to insert that can be undone with Ctrl+Z.
      if (!document.execCommand("insertText", false, "  ")) text.setRangeText("  ", text.selectionStart, text.selectionEnd, "end");
    } else if (event.key !== "Shift") leaving = false;
  }

  gutter.hidden = false;
  number(true);
  new ResizeObserver(fit).observe(text);
  if (text.dataset.line) goTo(Number(text.dataset.line));
  text.addEventListener("keydown", keys);
  text.addEventListener("blur", () => { leaving = false; });
  text.addEventListener("scroll", () => { gutter.scrollTop = text.scrollTop; });
  text.addEventListener("input", () => {
    number(false);
    say(isChanged() ? "Unsaved changes." : "Saved.");
  });

  // What checks, dry runs and language models find, or that they were asked, changes what is to be done next.
  // The address in which something under way asks for itself says how far it is.
  const underWay = () => Array.from(document.querySelectorAll("#findings-results[hx-trigger], #judgement-rows[hx-trigger]"), (part) => part.getAttribute("hx-get")).join();
  let waits = underWay();
  // Whoever is signed out is sent to another page, which is no part of this one.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, requestConfig } = event.detail;
    const asked = new URL(requestConfig.path, location.href).pathname;
    if (xhr.responseURL && new URL(xhr.responseURL).pathname !== asked) event.detail.shouldSwap = false;
  });
  document.addEventListener("htmx:afterSettle", () => {
    const now = underWay();
    if (waits === now) return;
    waits = now;
    document.body.dispatchEvent(new Event("findings-changed"));
  });
  // What may be decided changes with it, too, but a reason that is being typed is not to be lost.
  let isBehind = false;
  const isTyped = (reason) => reason.value || reason === document.activeElement;
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const panel = event.detail.target;
    if (panel.id !== "draft-actions") return;
    isBehind = Array.from(panel.querySelectorAll("textarea")).some(isTyped);
    if (isBehind) event.detail.shouldSwap = false;
  });
  document.addEventListener("focusout", (event) => {
    if (!isBehind || event.target.value || !event.target.matches("#draft-actions textarea")) return;
    isBehind = false;
    document.body.dispatchEvent(new Event("findings-changed"));
  });
  if (!save) return;

  document.addEventListener("keydown", (event) => {
    if (event.key === "s" && (event.ctrlKey || event.metaKey) && !event.altKey) {
      event.preventDefault();
      save.click();
    }
  });
  // Enter in a field does what the button below it says, not what the form's first button does.
  form.addEventListener("keydown", (event) => {
    const action = event.key === "Enter" && event.target.dataset?.enter;
    if (!action) return;
    event.preventDefault();
    form.querySelector(`button[value="${action}"]`).click();
  });
  // Who signed in again in another tab has another token, and the text here is still to be saved.
  function freshToken() {
    const token = document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1];
    if (token) form.elements.csrfmiddlewaretoken.value = token;
  }
  form.addEventListener("click", freshToken, true);
  form.addEventListener("submit", () => { going = true; });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-leave]")) going = true;
    const fault = event.target.closest(".faults button[name=open]");
    if (!fault || !form.contains(fault)) return;
    const at = fault.value.lastIndexOf("#");
    if (fault.value.slice(0, at) !== path) return;
    event.preventDefault();
    goTo(Number(fault.value.slice(at + 1)) || 1);
  });
  window.addEventListener("beforeunload", (event) => {
    if (!going && isChanged()) event.preventDefault();
  });

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt !== save) return;
    sent = text.value;
    say("Saving…");
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.requestConfig?.elt !== save) return;
    const { xhr } = event.detail;
    if (!xhr.responseText.includes('id="draft-status"')) {
      event.detail.shouldSwap = false;
      sayUnsaved([200, 403, 404].includes(xhr.status) ? "You are signed out or can no longer edit this draft. Sign in again in another tab, then save." : `The site answered with an error (${xhr.status}).`);
    } else if (xhr.status === 409 || xhr.status === 422) {
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    }
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (event.detail.requestConfig?.elt === save) sayUnsaved("The site isn't responding; try again.");
  });
  // A check, a dry run or a question takes the stored files: what is in the editor is stored before.
  let awaiting = null;
  document.addEventListener("htmx:confirm", (event) => {
    const { elt, verb, issueRequest } = event.detail;
    if (verb !== "post" || !elt.querySelector("#findings-check, #judgements-ask") || !isChanged()) return;
    event.preventDefault();
    awaiting = { elt, issueRequest };
    save.click();
  });
  // So do sending it, which says the revision that is seen here, and downloading it.
  document.addEventListener("click", (event) => {
    const taker = event.target.closest("[data-stored]");
    if (!taker) return;
    if (taker.form) taker.form.elements.revision.value = form.elements.revision.value;
    if (!isChanged()) return;
    event.preventDefault();
    awaiting = { elt: taker, issueRequest: () => document.getElementById(taker.id)?.click() };
    save.click();
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.elt !== save || event.detail.xhr.status === 200 || !awaiting) return;
    awaiting = null;
    state().scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("draft-saved", () => {
    stored = sent;
    number(true);
    if (isChanged()) say("Saved, but there are newer changes.");
    const next = awaiting;
    awaiting = null;
    if (next) next.issueRequest(true);
    if (!next?.elt.closest("#findings")) refresh();
  });

  // A check that is asked for meanwhile brings the newest state: no older answer may replace it.
  let asked = 0;
  let pending = 0;
  let askedBefore = 0;
  const asks = ({ elt, requestConfig }) => requestConfig?.verb === "post" && elt.closest("#findings");
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!asks(event.detail)) return;
    asked += 1;
    pending += 1;
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (asks(event.detail)) pending -= 1;
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { verb, path: address } = event.detail.requestConfig;
    if (verb === "get" && address === form.dataset.findings && (awaiting?.elt.closest("#findings") || pending || asked !== askedBefore)) event.detail.shouldSwap = false;
  });
  function refresh() {
    askedBefore = asked;
    htmx.ajax("GET", form.dataset.findings, { target: "#findings", swap: "outerHTML" });
  }
})();
