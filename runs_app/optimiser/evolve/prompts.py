"""Loads prompts from files, and fills them in: nothing may be missing and nothing left over."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.flags import EXAMPLE, allowed_text
from gpu_runner.data.signature import Signature
from gpu_runner.data.verdict import Abi, DeviceKind
from runs_app.optimiser.evolve.commands import Message, Prompt
from runs_app.optimiser.evolve.config import KnownTimes, Problem
from runs_app.optimiser.evolve.sections import clip, micros

MAX_DESCRIPTION_TOKENS = 2000
MAX_REFERENCE_TOKENS = 8000
MAX_WORKLOADS_TOKENS = 2000
MAX_VALUE_TOKENS = 7000
MAX_KERNELS_TOKENS = 15_000
MAX_FILES_TOKENS = 4000
"""Tasks may be long: what is more than this loses its middle, and the prompt says so."""

MAX_NOTES_TOKENS = 600
_LIMITS = {"kernels": MAX_KERNELS_TOKENS, "notes": MAX_NOTES_TOKENS}

MOST_TOKENS = 43_000
"""No prompt is longer, at `CHARACTERS_PER_TOKEN` characters each, but a long dialogue of `fsr`."""

FOLDER = Path(__file__).with_name("prompts")

_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)
_ONLY = re.compile(r"@(cuda|cpp|one|many|cap|parts) (.*)")
_PART = re.compile(r"^## (system|user)[ \t]*\n", re.MULTILINE)


_TOLERANCE = (
    "Each output element must be within a bound that depends on the dtype and on how many terms it"
    " sums."
)
_NO_HARDWARE = "- nothing else is known, because nothing has been measured on it yet"


class PromptError(ValueError):
    """A prompt file that cannot be used, or values that do not fit its placeholders."""


@dataclass(frozen=True)
class Template:
    """A prompt file: name and version from its front matter, and its two parts."""

    name: str
    version: int
    system: str
    user: str

    @property
    def placeholders(self) -> frozenset[str]:
        """Names of all placeholders."""
        return frozenset(_PLACEHOLDER.findall(self.system + self.user))


def render(name: str, problem: Problem, **values: str) -> Prompt:
    """The prompt of that name for a problem.

    Placeholders about the problem (`common`) are filled in by themselves; every other one must be
    among `values`, and every value must be used. A value that is too long loses its middle, but a
    plan, which is never cut. Raises `PromptError`.
    """
    clipped = {key: _clipped(key, value) for key, value in values.items()}
    return fill(name, clipped, common(problem))


def _clipped(name: str, value: str) -> str:
    if name == "strategy":  # its own limit is that of the answer
        return value
    return clip(value, _LIMITS.get(name, MAX_VALUE_TOKENS))


def fill(name: str, values: Mapping[str, str], known: Mapping[str, str] | None = None) -> Prompt:
    """The prompt of that name; every placeholder needs a value, and of `values` none is left over.

    known: values of which some may be left over. Raises `PromptError`.
    """
    template, known = load(name), known or {}
    missing = template.placeholders - values.keys() - known.keys()
    unused = values.keys() - template.placeholders
    if missing:
        raise PromptError(f"prompt {name!r} needs a value for {sorted(missing)[0]!r}")
    if unused:
        raise PromptError(f"prompt {name!r} has no placeholder {sorted(unused)[0]!r}")
    trimmed = {key: value.strip("\n") for key, value in values.items()}
    return Prompt(
        name=template.name,
        version=template.version,
        messages=tuple(
            Message(role=role, content=_filled(text, {**known, **trimmed}))
            for role, text in (("system", template.system), ("user", template.user))
        ),
    )


@functools.cache
def load(name: str) -> Template:
    """The prompt file of that name. Raises `PromptError`."""
    fields, body = _read(FOLDER / f"{name}.md")
    parts = _PART.split(body)
    if [part.strip() for part in parts[0::2]][:1] != [""] or parts[1::2] != ["system", "user"]:
        raise PromptError(f"prompt {name!r} needs the parts '## system' and '## user', in order")
    if fields.get("name") != name or not fields.get("version", "").isdigit():
        raise PromptError(f"prompt {name!r} needs its name and an integer version in its header")
    return Template(name, int(fields["version"]), parts[2].strip(), parts[4].strip())


def sample_text(what: str, number: int, count: int, *, mends: bool = False) -> str:
    """Tells answers apart that are asked for at the same time, so that they differ; "" for one.

    Such prompts may be the same but for this. A model that reads one alone would write the same
    idea for each. mends: they repair a kernel that failed.
    """
    if count == 1:
        return ""
    first = f"This is {what} {number} of {count}, written at the same time."
    if mends:
        other = "Number 1 only fixes the fault. Find a different way to make the kernel correct."
        return f"{first} {other if number > 1 else 'Fix the fault, and change nothing else.'}"
    if number == 1:
        return f"{first} Use your most promising idea."
    return (
        f"{first} Number 1 takes the most promising idea; each later number takes the next best"
        " idea of a different kind. Take yours."
    )


def names() -> list[str]:
    """Names of all prompts."""
    return sorted(path.stem for path in FOLDER.glob("*.md"))


def common(problem: Problem) -> dict[str, str]:
    """What every prompt may say of a problem."""
    facts = {
        "title": problem.title,
        "description": clip(problem.description.strip(), MAX_DESCRIPTION_TOKENS),
        "direction": problem.direction.value,
        "dtype": problem.dtype,
        "device": problem.device_name,
        "signature": _signature(problem),
        "symbol": _symbol(problem),
        "toolchain": problem.toolchain,
        "flags": allowed_text(problem.language),
        "flags_example": EXAMPLE[problem.language],
        "reference": clip(problem.reference.strip(), MAX_REFERENCE_TOKENS),
        "workloads": clip(workloads_text(problem), MAX_WORKLOADS_TOKENS),
        "goal": _goal(problem),
        "tolerance": problem.tolerance or _TOLERANCE,
        "values": problem.values,
        "hardware": "\n".join(f"- {fact}" for fact in problem.hardware) or _NO_HARDWARE,
        "by_compiler": f" by {problem.compiler}" if problem.compiler else "",
        "time_limit": _time_limit(problem),
        "answer_tokens": f"{problem.answer_tokens:,}",
        "fence": fence_of(problem),
        "language": _language(problem),
    }

    def of(name: str) -> str:
        return _filled(chosen(part(name), problem), facts)

    shared = {
        "task": of("task"),
        "contract": of(f"contract_{problem.abi}_{problem.language}") + _beside(problem),
        "rules": of("rules"),
        "hints": of(f"hints_{problem.language}"),
    }
    return {**facts, **shared, **{name: of(name) for name in ("form_kernel", "form_edits")}}


def _beside(problem: Problem) -> str:
    """The files that a run doesn't change; empty for a kernel of one file."""
    if not problem.seed_files:
        return ""
    texts = "\n\n".join(
        f"{name}:\n```{fence_of(problem)}\n{text.rstrip()}\n```"
        for name, text in sorted(problem.seed_files.items())
    )
    return (
        f"\n\n# Files beside it\n\nYour source file is {problem.seed_entry}. It can include these,"
        f" which stay as they are:\n\n{clip(texts, MAX_FILES_TOKENS)}"
    )


def _language(problem: Problem) -> str:
    if problem.device_kind is DeviceKind.CUDA:
        return "CUDA C++"
    return "C++" if problem.processors == 1 else "C++/OpenMP"


def fence_of(problem: Problem) -> str:
    """Tag of a fenced block with a kernel."""
    return "cuda" if problem.device_kind is DeviceKind.CUDA else "cpp"


def chosen(text: str, problem: Problem | None) -> str:
    """A piece's lines that are for this problem; all of them where none is given.

    A line that begins with @cuda or @cpp is for kernels in that language, one with @one or @many
    for a CPU on which a kernel gets one processor, or more; one with @cap where answers have a cap;
    one with @parts for float32 on a GPU, whose tensor cores can multiply its parts.
    """
    lines = []
    for line in text.splitlines():
        only = _ONLY.match(line)
        if only is None:
            lines.append(line)
        elif problem is None or only[1] in _traits(problem):
            lines.append(only[2])
    return "\n".join(lines).strip()


def _traits(problem: Problem) -> set[str]:
    traits = {problem.language.value, "one" if problem.processors == 1 else "many"}
    if problem.answer_tokens:
        traits.add("cap")
    if problem.device_kind is DeviceKind.CUDA and problem.dtype == "float32":
        traits.add("parts")
    return traits


@functools.cache
def part(name: str) -> str:
    """A piece that several prompts share. Raises `PromptError`."""
    _, body = _read(FOLDER / "parts" / f"{name}.md")
    return body.strip()


@functools.cache
def part_version(name: str) -> int:
    """Version of such a piece. Raises `PromptError`."""
    fields, _ = _read(FOLDER / "parts" / f"{name}.md")
    return int(fields["version"])


def _read(path: Path) -> tuple[dict[str, str], str]:
    match = _FRONT.match(path.read_text()) if path.is_file() else None
    if match is None:
        raise PromptError(f"there is no prompt {path.stem!r} with front matter")
    pairs = (line.partition(":") for line in match["front"].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}, match["body"]


def _filled(text: str, values: dict[str, str]) -> str:
    """One pass: what a value says in double braces stays as it is."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def _symbol(problem: Problem) -> str:
    if problem.abi is Abi.C:
        return Signature.parse(problem.signature).symbol
    return problem.direction.value


def _signature(problem: Problem) -> str:
    """The declaration to define; of a torch extension its function and arguments."""
    if problem.abi is Abi.C:
        return Signature.parse(problem.signature).text
    return problem.signature or f"{problem.direction}(the reference's arguments, in order)"


def workloads_text(problem: Problem) -> str:
    """The listed workloads, a line each, with their baselines and their limit."""
    known = {each.workload: each for each in problem.known}
    return "\n".join(
        f"- {workload}{_known(known.get(workload.partition(':')[0]))}"
        for workload in problem.workloads
    )


def _known(times: KnownTimes | None) -> str:
    if times is None:
        return ""
    parts = [f"{name} {micros(time)}" for name, time in times.baselines_ns.items()]
    if times.limit_ns is not None:
        binds = f" by {times.limit_by}" if times.limit_by else ""
        parts.append(f"limit {micros(times.limit_ns)}{binds}")
    return "; " + ", ".join(parts) if parts else ""


def _goal(problem: Problem) -> str:
    lines = [f"- {name}: {micros(time)}" for name, time in problem.baselines_ns.items()]
    if not lines:
        lines = ["- no baseline has been measured on this device yet"]
    if problem.floor_ns is not None:
        lines.append(f"- {_limit_name(problem)}: {micros(problem.floor_ns)}")
    if problem.limit_source:
        lines.append(f"- the limits above are {problem.limit_source}")
    elif problem.floor_ns is None:
        lines.append("- no known physical limit for this device")
    return "\n".join(lines)


def _limit_name(problem: Problem) -> str:
    if any(problem.may_beat(known.workload) for known in problem.known):
        return f"limit of the device's memory and its units for {problem.dtype}"
    return "physical limit of the device"


def _time_limit(problem: Problem) -> str:
    if problem.call_limit_s is None:
        return ""
    limit = f"{problem.call_limit_s:g} s"
    return f"A call that takes more than {limit} is stopped and counts as a failure."
