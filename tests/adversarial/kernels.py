"""Kernels of the red team as data: the header comment of each file says what must stop it."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement

from gpu_runner.data.formats import find_task
from gpu_runner.data.integrity import Check
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language, Mode, Verdict

FOLDER = Path(__file__).parent
HOSTILE_FOLDERS = ("cpu", "torch", "cuda", "python", "python_cuda")
HONEST_FOLDER = "honest"

MOST_OF_A_ROW = 2
MOST_RAISED = 1.5  # chosen: what an honest author would still put up with

_ENTRY = re.compile(r"(?://|#)\s*([a-z ]+?):\s*(.*)")
_CONTINUED = re.compile(r"(?://|#)\s{2,}(.*)")
_INCLUDE = re.compile(r'^#include "(?:\.\./)?(common/[\w.]+)"$', re.MULTILINE)
_IMPORT = re.compile(
    r"^from tests\.adversarial\.common\.(\w+) import (?:\([^)]*\)|[^(\n]*)$", re.MULTILINE
)
_FUTURE = "from __future__ import annotations\n"


class HeaderError(ValueError):
    """A file's header comment lacks something, or says what nobody can check."""


@dataclass(frozen=True)
class Stop:
    """One way in which a kernel may be stopped.

    verdict: with these words in the result. check: a suspicion of this kind. raised: a time that it
    claimed was raised to what the supervisor saw. None of them: construction, that is, the kernel
    is CORRECT and has gained nothing.
    """

    verdict: Verdict | None = None
    words: str = ""
    check: Check | None = None
    raised: bool = False

    def __str__(self) -> str:
        """As the file says it."""
        if self.verdict is not None:
            return f"verdict {self.verdict}" + (f": {self.words}" if self.words else "")
        if self.check is not None:
            return f"quarantine {self.check}"
        return "raised" if self.raised else "construction"

    @classmethod
    def parse(cls, text: str) -> Stop:
        """Inverse of `str`. Raises `HeaderError`."""
        kind, _, rest = text.strip().partition(" ")
        value, _, words = rest.partition(":")
        try:
            match kind:
                case "verdict":
                    return cls(verdict=Verdict(value.strip()), words=words.strip())
                case "quarantine":
                    return cls(check=Check(value.strip()))
                case "raised" if not rest:
                    return cls(raised=True)
                case "construction" if not rest:
                    return cls()
        except ValueError as error:
            raise HeaderError(str(error)) from None
        raise HeaderError(f"nothing stops a kernel by {text!r}")


@dataclass(frozen=True)
class Kernel:
    """A file of the red team. rows: of the catalogue; none for an honest control.

    stops: any of them will do. must_not_print: what a kernel prints that got what it wanted.
    at_least_ns: a latency below this means that a cheat paid off; so does a speedup of more than
    at_most_speedup, where the file asks for baselines. raised_at_most: an honest claim that becomes
    more than so many times as long is an accusation, too; a file that allows more says why. needs:
    packages beside torch, such as numpy<2.5. kind: of the device; the header of a Python module
    that needs a GPU says "device: cuda".
    """

    path: Path
    summary: str
    source: str
    task: Task
    abi: Abi
    mode: Mode
    kind: DeviceKind
    direction: Direction = Direction.FORWARD
    rows: tuple[int, ...] = ()
    stops: tuple[Stop, ...] = ()
    must_not_print: tuple[str, ...] = ()
    at_least_ns: float = 0.0
    at_most_speedup: float = math.inf
    raised_at_most: float = MOST_RAISED
    needs: tuple[str, ...] = ()

    @property
    def lacks(self) -> str:
        """Why it cannot be tried in this environment; empty if it can."""
        missing = [name for name in self.needs if not _is_installed(name)]
        return f"{', '.join(missing)} is not installed" if missing else ""

    @property
    def name(self) -> str:
        """Folder and stem: what the kernel is called in tables and tests."""
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def honest(self) -> bool:
        """Whether this is a control that must not be accused."""
        return not self.rows

    @property
    def needs_no_clock(self) -> bool:
        """Whether its outputs alone decide: what else the machine does then cannot matter."""
        wrong = (Verdict.WRONG_RESULT, Verdict.WRONG_SHAPE)
        return self.mode is Mode.TEST or (
            bool(self.stops) and all(stop.verdict in wrong for stop in self.stops)
        )

    def solution(self) -> Solution:
        """What its author hands in."""
        language = next(value for value in Language if value.suffix == self.path.suffix)
        return Solution(source=self.source, language=language, direction=self.direction)


def load_kernel(path: Path) -> Kernel:
    """Read one file. Raises `HeaderError` naming the file and what is wrong with its header."""
    text = path.read_text()
    try:
        return _kernel(path, text, _header(text))
    except (HeaderError, KeyError, ValueError) as error:
        raise HeaderError(f"{path.name}: {error}") from None


def load_kernels(kind: DeviceKind) -> list[Kernel]:
    """All kernels for a kind of device, hostile ones first, by row."""
    suffixes = [language.suffix for language in kind.languages]
    folders = [FOLDER / name for name in (*HOSTILE_FOLDERS, HONEST_FOLDER)]
    paths = [path for folder in folders for path in sorted(folder.iterdir())]
    found = [load_kernel(path) for path in paths if path.suffix in suffixes]
    kernels = [kernel for kernel in found if kernel.kind is kind]
    return sorted(kernels, key=lambda kernel: (kernel.honest, kernel.rows, kernel.name))


def repeated(kernels: Iterable[Kernel]) -> set[str]:
    """Names of hostile kernels of a kind that was tried before, for `make test` to leave out.

    A kind is a row of the catalogue, a language, and what stops it, with or without a clock.
    """
    seen: set[tuple[object, ...]] = set()
    names = set()
    for kernel in kernels:
        how = (kernel.path.parent, kernel.needs_no_clock, frozenset(kernel.stops))
        tries = {(row, *how) for row in kernel.rows}
        if tries and tries <= seen:
            names.add(kernel.name)
        seen |= tries
    return names


def crowded(kernels: Iterable[Kernel]) -> set[str]:
    """Names of hostile kernels whose rows two others have tried already, in the same language."""
    seen: Counter[tuple[object, ...]] = Counter()
    names = set()
    for kernel in kernels:
        tries = [(row, kernel.path.parent, kernel.needs_no_clock) for row in kernel.rows]
        if tries and all(seen[each] >= MOST_OF_A_ROW for each in tries):
            names.add(kernel.name)
        else:
            seen.update(tries)
    return names


def alike(kernels: Iterable[Kernel]) -> set[str]:
    """Names of honest kernels for `make test` to leave out: two of three of each kind.

    A kind is a language, with or without a clock.
    """
    kinds: dict[tuple[object, ...], list[str]] = {}
    for kernel in kernels:
        if kernel.honest:
            kinds.setdefault((kernel.path.suffix, kernel.needs_no_clock), []).append(kernel.name)
    return {name for names in kinds.values() for place, name in enumerate(names) if place % 3}


def _header(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    last: list[str] = []
    for line in text.splitlines():
        if not line.startswith(("//", "#")):
            break
        more, entry = _CONTINUED.fullmatch(line), _ENTRY.fullmatch(line.strip())
        if more is not None and last:
            last[-1] += f" {more[1].strip()}"
        elif entry is not None:
            last = found.setdefault(entry[1], [])
            last.append(entry[2].strip())
    return found


def _is_installed(need: str) -> bool:
    wanted = Requirement(need)
    if importlib.util.find_spec(wanted.name) is None:
        return False
    return not wanted.specifier or wanted.specifier.contains(version(wanted.name))


@functools.cache
def _task(name: str) -> Task:
    return find_task(name)


def _kernel(path: Path, text: str, header: dict[str, list[str]]) -> Kernel:
    honest = path.parent.name == HONEST_FOLDER
    rows = tuple(int(row) for line in header.get("row", []) for row in line.split(","))
    stops = tuple(Stop.parse(line) for line in header.get("stopped by", []))
    if honest == bool(rows) or honest == bool(stops):
        raise HeaderError("a hostile file names its rows and what stops it, an honest one neither")
    task = _task(_one(header, "task", "vector_add"))
    language = next(value for value in Language if value.suffix == path.suffix)
    is_module = language is Language.PYTHON
    kind = DeviceKind(_one(header, "device", language.device_kinds[-1]))
    if kind not in language.device_kinds:
        raise HeaderError(f"{language} sources do not run on a {kind} device")
    abi = Abi(_one(header, "abi", task.abi if is_module else "c"))
    if task.abi is not abi:
        raise HeaderError(f"the task {task.name} has the {task.abi} ABI")
    return Kernel(
        path=path,
        summary=_one(header, "does" if honest else "tries"),
        source=_with_common(text),
        task=_reduced(task, header, kind),
        abi=Abi.TORCH if is_module else abi,
        mode=Mode(_one(header, "mode", "quick")),
        kind=kind,
        direction=Direction(_one(header, "direction", "forward")),
        rows=rows,
        stops=stops,
        must_not_print=tuple(header.get("must not print", [])),
        at_least_ns=float(_one(header, "at least", "0 ns").removesuffix("ns")),
        at_most_speedup=float(_one(header, "at most", "inf x").removesuffix("x")),
        raised_at_most=float(_one(header, "raised at most", f"{MOST_RAISED} x").removesuffix("x")),
        needs=_names(header, "needs"),
    )


def _one(header: dict[str, list[str]], name: str, default: str | None = None) -> str:
    values = header.get(name, [] if default is None else [default])
    if len(values) != 1:
        raise HeaderError(f"one line `// {name}: ...` is needed")
    return values[0]


def _reduced(task: Task, header: dict[str, list[str]], kind: DeviceKind) -> Task:
    """The task with the named workloads alone, and without baselines that the file does not name.

    They take long, and prove nothing but where somebody wants to slow them down.
    """
    names = _names(header, "workloads")
    unknown = set(names) - {each.name for each in task.workloads if kind in each.devices}
    if unknown:
        missing = ", ".join(sorted(unknown))
        raise HeaderError(f"{task.name} has no workload {missing} for a {kind} device")
    chosen = tuple(w for w in task.workloads if not names or w.name in names)
    baselines = _names(header, "baselines")
    if not set(baselines) <= set(task.baselines):
        raise HeaderError(f"{task.name} has no such baseline")
    if bool(baselines) != ("at most" in header):
        raise HeaderError("baselines are there for a speedup that is bounded, and the other way")
    libraries = task.libraries or "libraries" in header
    return dataclasses.replace(task, workloads=chosen, baselines=baselines, libraries=libraries)


def _names(header: dict[str, list[str]], name: str) -> tuple[str, ...]:
    return tuple(word.strip() for line in header.get(name, []) for word in line.split(","))


def _with_common(text: str) -> str:
    """The text as one file: a submission is a single source, so what attacks share is copied in."""
    seen: set[str] = set()

    def expand(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        return expanded((FOLDER / name).read_text().replace(_FUTURE, ""))

    def expanded(text: str) -> str:
        text = _INCLUDE.sub(lambda match: expand(match[1]), text)
        return _IMPORT.sub(lambda match: expand(f"common/{match[1]}.py"), text)

    return expanded(text)
