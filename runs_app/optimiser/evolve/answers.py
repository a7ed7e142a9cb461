"""Reads a language model's answer: the kernel in it, or a vote, whatever surrounds them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpu_runner.data.codec import DataError
from gpu_runner.data.signature import Signature
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Abi
from runs_app.optimiser.evolve.config import Problem
from runs_app.optimiser.evolve.cpp_text import defines, is_complete, mentions

MAX_TITLE = 120
MAX_THOUGHT = 4000

_FENCE = re.compile(r"^[ \t>]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<tag>[^`\n]*)$")
_CODE_TAGS = {"c", "cc", "cpp", "c++", "cxx", "cu", "cuda", "cuda-cpp", "cuda-c++", "h", "hpp"}
_PROSE_TAGS = {"", "md", "markdown", "text", "txt", "json"}
_HEADING = re.compile(
    r"^[#*\s]*(?P<name>NAME|TITLE|THOUGHTS?|REASONING|PLAN|CODE)\b[*\s]*:[*\s]*(?P<rest>.*)$",
    re.MULTILINE,
)
_CODE_LINE = re.compile(
    r"^\s*(?:#\s*(?:include|define|pragma|if|ifdef|ifndef)\b|//|/\*|extern\b|template\b"
    r"|namespace\b|using\b|static\b|constexpr\b|inline\b|struct\b|__global__\b|__device__\b)"
)
_CODE_END = re.compile(r"[;}]\s*(?://.*)?$|^\s*#|\*/\s*$")
_REFUSAL = re.compile(
    r"\bI(?: am|'m|’m)? (?:can(?:'|’)?t|cannot|can not|sorry|unable|won(?:'|’)t|will not)\b"
    r"|\bI must decline\b|\bas an AI\b",
    re.IGNORECASE,
)
_JSON_CODE_KEYS = ("code", "kernel", "source", "cuda_code", "cpp_code", "solution", "answer")
_JSON_TITLE_KEYS = ("name", "title")
_JSON_THOUGHT_KEYS = ("thought", "thoughts", "reasoning", "explanation", "description")
_JSON_VOTE_KEYS = ("answer", "final_verification_answer", "vote", "verdict", "passes", "correct")
_VOTE = re.compile(
    r"FINAL\s+VERIFICATION\s+ANSWER[\"'*_`\s]*[:=\-]?[\"'*_`\s{(\[]*(true|false|yes|no|pass|fail)\b",
    re.IGNORECASE,
)
_CONSENT = re.compile(r"^[\"'*_`#\s]*OK\b", re.IGNORECASE | re.MULTILINE)
_BARE_VOTE = re.compile(r"^[\"'*_`\s]*(true|false)[\"'*_`\s.]*$", re.IGNORECASE)
_TRUE = {"true", "yes", "pass", "1"}
_FALSE = {"false", "no", "fail", "0"}


@dataclass(frozen=True)
class Parsed:
    """A whole kernel; title and thought can be empty."""

    code: str
    title: str = ""
    thought: str = ""


@dataclass(frozen=True)
class Unusable:
    """Why nothing could be read, in a sentence for a person and for the model's next try."""

    reason: str


@dataclass(frozen=True)
class Block:
    """A piece of an answer that may be code: its language tag, and whether its fence closed."""

    tag: str
    text: str
    closed: bool


@dataclass(frozen=True)
class Wanted:
    """What a kernel must have for the runner to find it."""

    abi: Abi
    symbol: str  # the c ABI's function; empty for torch

    @classmethod
    def of(cls, problem: Problem) -> Wanted:
        """What the kernels of a problem must have."""
        is_c = problem.abi is Abi.C
        return cls(problem.abi, Signature.parse(problem.signature).symbol if is_c else "")

    def is_in(self, code: str) -> bool:
        """Whether the code defines the symbol (c ABI) or a pybind module (torch ABI)."""
        if self.abi is Abi.C:
            return defines(code, self.symbol)
        return mentions(code, "PYBIND11_MODULE")

    @property
    def sentence(self) -> str:
        """What is missing where it is missing."""
        if self.abi is Abi.C:
            return f"no code block defines the function {self.symbol!r}"
        return "no code block has a PYBIND11_MODULE"


def read_kernel(text: str, problem: Problem, *, cut: bool = False) -> Parsed | Unusable:
    """The kernel of an answer.

    cut: the answer ended before its author did (length limit, lost connection). Of several blocks
    the one is taken that holds what the task requires, then one tagged as C++ or CUDA, then the
    longest, then the last. A block without closing fence counts only if all its brackets close.
    """
    if not text.strip():
        return Unusable("the answer is empty")
    wanted = Wanted.of(problem)
    blocks = list(_blocks(text))
    usable = [b for b in blocks if wanted.is_in(b.text) and (b.closed or is_complete(b.text))]
    if not usable:
        return Unusable(_why(text, blocks, wanted, cut=cut))
    best = max(enumerate(usable), key=lambda item: (_is_code(item[1]), len(item[1].text), item[0]))
    code = best[1].text.strip("\n") + "\n"
    try:
        Solution(source=code, language=problem.language)
    except DataError as error:
        return Unusable(f"the code {error.reason}")
    title, thought = about(text)
    return Parsed(code, title, thought)


def read_vote(text: str) -> bool | Unusable:
    """The vote of a verifier's answer; of several the last counts."""
    if not text.strip():
        return Unusable("the answer is empty")
    votes = _VOTE.findall(text)
    if votes:
        return votes[-1].lower() in _TRUE
    for document in reversed(list(_objects(text))):
        vote = _json_vote(document)
        if vote is not None:
            return vote
    bare = _BARE_VOTE.match(text.strip().splitlines()[-1])
    if bare:
        return bare[1].lower() in _TRUE
    if _REFUSAL.search(text):
        return Unusable("the model refused to vote")
    return Unusable("the answer has no line 'FINAL VERIFICATION ANSWER: True' or '... False'")


def read_text(text: str) -> str | Unusable:
    """An answer in prose; empty ones and plain refusals are unusable."""
    clean = text.strip()
    if not clean:
        return Unusable("the answer is empty")
    refusal = _REFUSAL.search(clean[:40])
    if len(clean) < 400 and refusal:
        return Unusable(f"the model refused: {_quote(clean)}")
    return clean


def is_consent(text: str) -> bool:
    """Whether an answer says OK, and has no code: the toolchain needs no change."""
    return bool(_CONSENT.search(text)) and not fenced(text)


def fenced(text: str) -> list[Block]:
    """Fenced blocks in order. A fence with a tag inside a block of prose opens a nested one."""
    found: list[Block] = []
    stack: list[tuple[str, str, list[str]]] = []  # fence, tag, lines
    for line in text.splitlines():
        match = _FENCE.match(line)
        if match is None:
            if stack:
                stack[-1][2].append(line)
            continue
        mark, tag = match["mark"], match["tag"].strip().lower()
        if stack and not tag and mark.startswith(stack[-1][0]):
            _, opened, lines = stack.pop()
            found.append(Block(opened, "\n".join(lines), closed=True))
        elif not stack or (tag and stack[-1][1] in _PROSE_TAGS):
            stack.append((mark, tag, []))
        elif tag and mark.startswith(stack[-1][0]):  # the block before was never closed
            _, opened, lines = stack.pop()
            found.append(Block(opened, "\n".join(lines), closed=False))
            stack.append((mark, tag, []))
        else:
            stack[-1][2].append(line)
    found += [Block(tag, "\n".join(lines), closed=False) for _, tag, lines in stack]
    return found


def _blocks(text: str) -> Iterator[Block]:
    """Everything in an answer that may be the code: fenced, within JSON, or bare."""
    blocks = fenced(text)
    yield from (block for block in blocks if block.tag != "json")
    for document in _objects(text):
        for key in _JSON_CODE_KEYS:
            value = document.get(key)
            if isinstance(value, str):
                inner = fenced(value)
                yield from inner or [Block("cpp", value, closed=True)]
    if not blocks:
        yield from _bare(text)


def _bare(text: str) -> Iterator[Block]:
    """Code without any fence: from the first line that looks like code to the last one."""
    headings = [m for m in _HEADING.finditer(text) if m["name"] == "CODE"]
    lines = text[headings[-1].start("rest") :].splitlines() if headings else text.splitlines()
    starts = [i for i, line in enumerate(lines) if _CODE_LINE.match(line)]
    ends = [i for i, line in enumerate(lines) if _CODE_END.search(line)]
    if starts and ends and ends[-1] >= starts[0]:
        yield Block("", "\n".join(lines[starts[0] : ends[-1] + 1]), closed=False)


def _objects(text: str) -> Iterator[dict[str, object]]:
    """JSON objects: the whole answer, or blocks of it."""
    stripped = text.strip()
    pieces = [block.text for block in fenced(text) if block.tag in ("json", "")]
    last = stripped.rfind("{")
    pieces += [stripped, stripped[last:] if last >= 0 else ""]
    for piece in pieces:
        if not piece.strip().startswith("{"):
            continue
        try:
            document = json.loads(piece, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            yield document


def _json_vote(document: dict[str, object]) -> bool | None:
    lowered = {key.lower().replace(" ", "_"): value for key, value in document.items()}
    for key in _JSON_VOTE_KEYS:
        value = str(lowered.get(key, "")).strip().lower()
        if value in _TRUE | _FALSE:
            return value in _TRUE
    return None


def _is_code(block: Block) -> bool:
    words = block.tag.split()
    return bool(words) and words[0] in _CODE_TAGS


def _why(text: str, blocks: list[Block], wanted: Wanted, *, cut: bool) -> str:
    fences = fenced(text)
    torn = bool(fences) and not fences[-1].closed and not is_complete(fences[-1].text)
    if cut or torn or _is_torn(blocks, wanted):
        return "the answer was cut off before its code was complete"
    if not blocks and _REFUSAL.search(text[:2000]):
        return f"the model refused: {_quote(text)}"
    if not blocks:
        return f"the answer has no code: {_quote(text)}"
    return wanted.sentence


def _is_torn(blocks: list[Block], wanted: Wanted) -> bool:
    """Whether what the task asks for was begun in a block that does not end."""
    torn = any(not block.closed and not is_complete(block.text) for block in blocks)
    return torn and any(wanted.is_in(block.text) for block in blocks)


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line[:160]}…”" if len(line) > 160 else f"“{line}”"


def about(text: str) -> tuple[str, str]:
    """Title and thought of an answer: from headings, JSON, or the prose before the code."""
    for document in _objects(text):
        title = _first(document, _JSON_TITLE_KEYS)
        thought = _first(document, _JSON_THOUGHT_KEYS)
        if title or thought:
            return title[:MAX_TITLE], thought[:MAX_THOUGHT]
    headings = list(_HEADING.finditer(text))
    sections: dict[str, str] = {}
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for match, end in zip(headings, ends, strict=False):
        sections.setdefault(match["name"], text[match.start("rest") : end].strip())
    title = " ".join((sections.get("NAME") or sections.get("TITLE") or "").split("\n")[0].split())
    names = ("THOUGHT", "THOUGHTS", "REASONING", "PLAN")
    prose = "" if headings else text
    thought = _prose(next((sections[name] for name in names if name in sections), prose))
    title = title.strip("*` ") or _first_sentence(thought)
    return title[:MAX_TITLE], thought[:MAX_THOUGHT]


def _first_sentence(thought: str) -> str:
    """What a kernel without a title is called: how its author begins to speak of it."""
    line = next((line for line in thought.splitlines() if line.strip()), "").strip("#*` ")
    return re.split(r"(?<=[.!?])\s", line, maxsplit=1)[0].rstrip(".:")


def _first(document: dict[str, object], keys: tuple[str, ...]) -> str:
    values = (document.get(key) for key in keys)
    return next((value.strip() for value in values if isinstance(value, str)), "")


def _prose(text: str) -> str:
    """The text before the first fence; none where the text begins with code."""
    lines = []
    for line in text.splitlines():
        if _FENCE.match(line) or _CODE_LINE.match(line):
            break
        lines.append(line)
    return "\n".join(lines).strip()
