"""What measured processes ran: digests for the result, and code that no compiler of ours made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from gpu_runner.data import archive
from gpu_runner.data.archive import Loaded
from gpu_runner.data.environment import Environment
from gpu_runner.data.integrity import AuditCheck, AuditState, Check, Suspicion
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Abi, DeviceKind
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.runner.target import Target

SOURCE, TOOLCHAIN, INSTALLED, LIBRARY, FOREIGN = (
    "source",
    "toolchain",
    "installed",
    "library",
    "foreign",
)
AUDIT_CHECK = "loaded"
"""Name of the audit's check that compares these digests."""

_MADE_BY_US = (SOURCE, archive.EXTENSIONS, LIBRARY, FOREIGN)
"""Parts that are the same whenever the same toolchain builds the same source."""
_TOOLCHAIN = ("python", "torch", "compiler", "host_compiler", "driver", "architecture", "cutlass")


def loaded(
    solution: Solution, target: Target, environment: Environment, packages: Mapping[str, str]
) -> tuple[Loaded, ...]:
    """What processes on listed workloads ran, a part after the other.

    What hidden workloads compile is left out: a digest would tell of their sizes.
    """
    seen = target.witness.seen
    versions = {n: archive.digest((getattr(environment, n) or "None").encode()) for n in _TOOLCHAIN}
    on_gpu = environment.device_kind is DeviceKind.CUDA
    told = {**packages, **(toolchain.installed_at() if on_gpu else {})}
    versions |= {name: archive.digest(version.encode()) for name, version in told.items()}
    installed = {f"{PurePosixPath(path).name} {size}": "" for path, size in seen.installed}
    parts = [
        archive.loaded(SOURCE, _texts(solution)),
        *_compiled(target),
        archive.of_digests(TOOLCHAIN, versions),
    ]
    if installed:
        parts.append(archive.of_digests(INSTALLED, installed))
    if foreign := _foreign(target):
        parts.append(archive.of_digests(FOREIGN, foreign))
    return tuple(parts)


def _texts(solution: Solution) -> dict[str, bytes]:
    beside = {f"source/{name}": text.encode() for name, text in solution.files.items()}
    return {"source": solution.source.encode(), **beside}


def foreign_suspicions(target: Target, *, hidden: bool = False) -> Iterator[Suspicion]:
    """Code in a measured process that is neither installed nor the work of our compilers."""
    names = sorted({PurePosixPath(path).name[:100] for path in _foreign(target)})
    if names:
        what = "code" if hidden else f"{names[0]!r}"
        reason = f"runs {what} that was not compiled in advance from its source"
        yield Suspicion(check=Check.LOADED, reason=reason)


def compared(before: Sequence[Loaded], now: Sequence[Loaded]) -> AuditCheck:
    """Whether an audit ran the same code as the result that it is about."""
    old, new = ({part.part: part for part in parts} for parts in (before, now))
    if not old:
        return _check(AuditState.SKIPPED, "the ranked result doesn't say what it ran")
    if old.get(TOOLCHAIN) != new.get(TOOLCHAIN):
        return _check(AuditState.SKIPPED, "the ranked result used another toolchain")
    changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    if ours := [name for name in changed if name in _MADE_BY_US]:
        reason = f"this audit ran different code from the ranked result: {', '.join(ours)}"
        return _check(AuditState.SUSPICIOUS, reason)
    also = f"; compiled again with a different result: {', '.join(changed)}" if changed else ""
    return _check(AuditState.PASSED, f"the same code as in the ranked result{also}")


def _check(state: AuditState, reason: str) -> AuditCheck:
    return AuditCheck(name=AUDIT_CHECK, state=state, reason=reason)


def _compiled(target: Target) -> tuple[Loaded, ...]:
    if target.library is None:
        return ()
    content = target.library.read_bytes()
    if target.is_module:
        return archive.parts(archive.read(content))
    return (archive.loaded(LIBRARY, {"library": content}),)


def _foreign(target: Target) -> dict[str, str]:
    """Digests of files that were mapped as code and that we did not hand over, by path."""
    if target.library is None or target.abi is Abi.C:
        return {}
    content = target.library.read_bytes()
    files = archive.read(content) if target.is_module else {f"{archive.EXTENSIONS}/": content}
    known = {archive.digest(data) for name, data in files.items() if archive.may_be_mapped(name)}
    return {path: digest for path, digest in target.witness.seen.own if digest not in known}
