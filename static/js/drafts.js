// Texts of the editor as this browser keeps them: the draft of each task, direction and language, and what it replaced.

const MOST_KEPT = 10;

function read(name) {
  let text = null;
  try {
    text = localStorage.getItem(name);
    return text === null ? null : JSON.parse(text);
  } catch {
    return text && { text, base: "" }; // a draft as it was kept before, or no storage
  }
}

function write(name, value) {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

const DRAFT = "kbench-draft:";
const draftName = (key) => DRAFT + key;
const keptName = (key) => `kbench-kept:${key}`;

export function draft(key) {
  const found = read(draftName(key));
  return found && typeof found.text === "string" ? found : null;
}

// The parts of the key (task, direction, language) of the newest draft that fits; null if none does.
export function newestDraft(fits) {
  let names = [];
  try {
    names = Object.keys(localStorage);
  } catch { /* no storage, no drafts */ }
  const keys = names.filter((name) => name.startsWith(DRAFT)).map((name) => name.slice(DRAFT.length));
  const found = keys.filter((key) => draft(key) && fits(...key.split(":")));
  const at = (key) => draft(key).at || 0;
  return found.length ? found.reduce((one, other) => (at(other) > at(one) ? other : one)).split(":") : null;
}

// `base` says what the text was begun from, `files` what lies beside it. False if the browser keeps nothing; the older texts give way first.
export function saveDraft(key, text, base, files) {
  const value = text ? { text, base, files, at: Date.now() } : null;
  if (write(draftName(key), value)) return true;
  write(keptName(key), null);
  return write(draftName(key), value);
}

export function forgetDraft(key) {
  write(draftName(key), null);
}

export function kept(key) {
  const found = read(keptName(key));
  return Array.isArray(found) ? found.filter((each) => typeof each?.text === "string") : [];
}

export const alike = (files, others) => JSON.stringify(files) === JSON.stringify(others);

// Puts a text aside, newest first, each only once.
export function keep(key, text, files) {
  if (!text.trim()) return;
  const others = kept(key).filter((each) => each.text !== text || !alike(each.files, files));
  write(keptName(key), [{ text, files, at: Date.now() }, ...others].slice(0, MOST_KEPT));
}
