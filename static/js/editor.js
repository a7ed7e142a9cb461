// A code editor in the place of a textarea: C++, CUDA and Python in colours, marks at lines, and keys that leave it.
import {
  Compartment, EditorState, EditorView, HighlightStyle, StreamLanguage, bracketMatching, defaultKeymap, drawSelection,
  highlightActiveLine, highlightActiveLineGutter, highlightSelectionMatches, highlightSpecialChars, history,
  historyKeymap, indentUnit, indentWithTab, keymap, lineNumbers, lintGutter, lintKeymap, python, search,
  searchKeymap, setDiagnostics, syntaxHighlighting, tags,
} from "../vendor/codemirror/codemirror.min.js";
import { language as cpp } from "./cpp.js";

const CPP = StreamLanguage.define(cpp); // CUDA, too
const PYTHON = StreamLanguage.define(python);
const named = (language) => (language === "python" ? PYTHON : CPP);

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword], color: "var(--code-keyword)" },
  { tag: [tags.typeName, tags.standard(tags.variableName)], color: "var(--code-type)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--code-number)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: tags.meta, color: "var(--code-preprocessor)" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName)], color: "var(--code-function)" },
]);

const LOOK = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--paper)", fontSize: "var(--text-s)", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--ink-3)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--ink) 5%, transparent)" },
  ".cm-activeLineGutter": { color: "var(--ink-2)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 28%, transparent)" },
  ".cm-selectionMatch, .cm-searchMatch": { backgroundColor: "var(--warn-wash)" },
  ".cm-searchMatch-selected": { outline: "1px solid var(--warn)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-wash)", outline: "1px solid var(--line-strong)" },
  ".cm-panels": { backgroundColor: "var(--surface)", color: "var(--ink)", borderColor: "var(--line)" },
  ".cm-panel input, .cm-panel button, .cm-panel label": { fontSize: "var(--text-s)" },
  ".cm-textfield": { backgroundColor: "var(--paper)", borderColor: "var(--line-strong)" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--paper)", borderColor: "var(--line-strong)", color: "var(--ink)" },
  ".cm-tooltip": { backgroundColor: "var(--paper)", color: "var(--ink)", borderColor: "var(--line-strong)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
  ".cm-diagnostic-info": { borderLeftColor: "var(--accent)" },
});

// What a compiler or a profiler said of a line, as a mark from its column to the line's end.
function marks(state, places) {
  return places.filter((each) => each.line >= 1 && each.line <= state.doc.lines).map((each) => {
    const line = state.doc.line(each.line);
    const start = Math.min(line.from + Math.max((each.column || 1) - 1, 0), line.to);
    const from = each.column ? start : line.from + (line.text.length - line.text.trimStart().length);
    return { from, to: Math.max(line.to, from), severity: each.severity, message: each.message };
  }).sort((one, other) => one.from - other.from);
}

// Hides `textarea` behind an editor that keeps its value; returns what the page needs of it.
export function createEditor(textarea, { nonce, label, description, language, onRun }) {
  let silent = false;
  const spoken = new Compartment();
  const runs = { key: "Mod-Enter", run: () => { onRun("quick"); return true; }, shift: () => { onRun("ranked"); return true; } };
  const keys = [runs, indentWithTab];
  const changed = EditorView.updateListener.of((update) => {
    if (!update.docChanged) return;
    textarea.value = update.state.doc.toString();
    if (!silent) textarea.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const extensions = [
    nonce ? EditorView.cspNonce.of(nonce) : [],
    keymap.of([...keys, ...searchKeymap, ...historyKeymap, ...lintKeymap, ...defaultKeymap]),
    lineNumbers(), lintGutter(), highlightActiveLineGutter(), highlightActiveLine(), highlightSpecialChars(),
    drawSelection(), history(), bracketMatching(), highlightSelectionMatches(), search({ top: true }),
    indentUnit.of("    "), EditorState.tabSize.of(4), spoken.of(named(language)),
    syntaxHighlighting(COLOURS), LOOK, changed,
    EditorView.contentAttributes.of({ "aria-labelledby": label, "aria-describedby": description, spellcheck: "false", tabindex: "0" }),
  ];
  const place = document.createElement("div");
  place.className = "editor-place";
  textarea.before(place);
  textarea.hidden = true;
  const view = new EditorView({ state: EditorState.create({ doc: textarea.value, extensions }), parent: place });

  function set(text) {
    silent = true;
    // As an event of its own, so that one Ctrl+Z brings back what was there.
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 }, userEvent: "input.replace" });
    silent = false;
    mark([]);
  }

  function mark(places) {
    view.dispatch(setDiagnostics(view.state, marks(view.state, places)));
  }

  // Reads the text in another language.
  function speak(language) {
    view.dispatch({ effects: spoken.reconfigure(named(language)) });
  }

  function goTo(number) {
    const line = view.state.doc.line(Math.min(Math.max(number, 1), view.state.doc.lines));
    view.dispatch({ selection: { anchor: line.from, head: line.to }, effects: EditorView.scrollIntoView(line.from, { y: "center" }) });
    view.focus();
  }

  return { set, mark, speak, goTo, focus: () => view.focus() };
}
