// Python as CodeMirror reads it line by line: words in classes, and how far the next line is indented.

const words = (text) => new Set(text.split(" "));
const KEYWORDS = words("and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield");
const TYPES = words("bool bytes complex dict float frozenset int list object set str tuple type Tensor constexpr");
const BUILT_IN = words("abs all any enumerate filter getattr hasattr isinstance len map max min next print range reversed round setattr slice sorted sum super zip torch triton tl numba cutlass cute self cls");
const ATOMS = words("True False None");
const TRIPLE = { '"""': /(?:[^\\"]|\\.|"(?!""))*"""/y, "'''": /(?:[^\\']|\\.|'(?!''))*'''/y };

function afterString(stream, state) {
  const rest = TRIPLE[state.until];
  rest.lastIndex = stream.pos;
  if (rest.test(stream.string)) {
    stream.pos = rest.lastIndex;
    state.until = "";
  } else {
    stream.skipToEnd();
  }
  return "string";
}

function word(stream) {
  const name = stream.current();
  if (KEYWORDS.has(name)) return "keyword";
  if (TYPES.has(name)) return "typeName";
  if (ATOMS.has(name)) return "atom";
  if (BUILT_IN.has(name)) return "variableName.standard";
  return stream.match(/^\s*\(/, false) ? "variableName.function" : "variableName";
}

function token(stream, state) {
  if (state.until) return afterString(stream, state);
  if (stream.sol() && !state.depth && stream.match(/^\s*[^\s#]/, false)) {
    state.column = stream.indentation();
    state.opens = false;
  }
  if (stream.eatSpace()) return null;
  if (stream.match(/^#.*/)) return "comment";
  const quote = stream.match(/^(?:[rR][bBfF]?|[bBfF][rR]?|[uU])?("""|'''|"|')/);
  if (quote) {
    if (quote[1].length === 3) {
      state.until = quote[1];
      return afterString(stream, state);
    }
    stream.match(quote[1] === '"' ? /^(?:[^\\"]|\\.)*"?/ : /^(?:[^\\']|\\.)*'?/);
    return "string";
  }
  if (!stream.string.slice(0, stream.pos).trim() && stream.match(/^@\s*[\w.]+/)) return "meta"; // not the product of matrices
  if (stream.match(/^(?:0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?j?)/)) return "number";
  const next = stream.next();
  if (/[\p{L}_]/u.test(next)) {
    stream.eatWhile(/[\p{L}\p{N}_]/u);
    return word(stream);
  }
  if ("([{".includes(next)) state.depth += 1;
  if (")]}".includes(next)) state.depth = Math.max(state.depth - 1, 0);
  if (next === ":" && !state.depth) state.opens = Boolean(stream.match(/^\s*(?:#.*)?$/, false));
  return /[[\]{}(),:;]/.test(next) ? "punctuation" : "operator";
}

function indent(state, after, context) {
  if (state.until) return null;
  const deeper = state.opens || (state.depth && !/^\s*[)\]}]/.test(after));
  return state.column + (deeper ? context.unit : 0);
}

export const language = {
  name: "python",
  startState: () => ({ until: "", depth: 0, column: 0, opens: false }),
  token,
  indent,
  languageData: { commentTokens: { line: "#" }, indentOnInput: /^\s*[)\]}]$/ },
};
