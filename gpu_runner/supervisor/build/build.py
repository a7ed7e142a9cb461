"""Compiles in a jail without GPU and network, into a content-addressed cache."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gpu_runner.data.archive import PROGRAMS, BadArchive, is_built, taken, written
from gpu_runner.data.codec import decode, encode
from gpu_runner.data.evaluation import BuildReport, EvaluationRequest
from gpu_runner.data.extension import Extension
from gpu_runner.data.signature import Signature
from gpu_runner.data.verdict import Abi, DeviceKind, Language
from gpu_runner.supervisor.build import passes
from gpu_runner.supervisor.build.answers import asked_again
from gpu_runner.supervisor.build.compiler_log import (
    kernel_resources,
    shortened,
    without_header_warnings,
)
from gpu_runner.supervisor.build.declaration import NATIVE_FOLDER, declaration, shim_source, unmet
from gpu_runner.supervisor.build.importer import Importer, build_limits
from gpu_runner.supervisor.build.module import ModuleRecipe, handed_over, module_recipe
from gpu_runner.supervisor.build.recipe import Built, Recipe
from gpu_runner.supervisor.build.triton_compiler import TritonCompiler
from gpu_runner.supervisor.build.workshop import (
    Made,
    Wanted,
    Workshop,
    entry_name,
    extension_recipes,
)
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.device.device import cuda_architecture
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import read_json, unnamed, write_atomically
from gpu_runner.supervisor.host.jail import Jail
from gpu_runner.supervisor.host.killed import KilledFromOutside, is_from_outside, name_of, signal_of
from gpu_runner.supervisor.host.process import ChildProcess

logger = logging.getLogger(__name__)

LIBRARY_LIMIT_BYTES = 64 << 20  # chosen: ten times a large torch extension
_TOO_LARGE = f"\nerror: the library is larger than {LIBRARY_LIMIT_BYTES >> 20} MiB"
LOG_LIMIT_CHARACTERS = 32 * 1024  # chosen: what a person reads
_DECLARATION = "kbench_declaration.h"
_KILLED_PART = re.compile(
    r"^(?:\S+: fatal error: (?:Killed|Terminated|Interrupt|Hangup|Quit) signal terminated program "
    r"|\S+: fatal error: \S+ terminated with signal (?:9|15|2|1|3) "
    r"|nvcc error +: '\S+' died due to signal (?:9|15|2|1|3) )",
    re.MULTILINE,
)
"""What a compiler says of a program of its own that somebody ended. A source can have the assembler
print such a line."""
_EXPORTING = ("-Xcompiler=-fvisibility=hidden", "-Xcompiler=-rdynamic")
"""A program's functions that are marked so come before those of a library that it loads."""


def unchanged(recipe: Recipe) -> Recipe:
    return recipe


def build_solution(
    request: EvaluationRequest,
    config: SupervisorConfig,
    variant: Callable[[Recipe], Recipe] = unchanged,
) -> Built:
    """Compile a submission; a failure is the author's, and its log is for the author.

    variant: changes how, for a sanitizer. Raises `KilledFromOutside` where the compiler, or a part
    of it, was ended by this host.
    """
    built = _first_that_builds([variant(r) for r in solution_recipes(request, config)], config)
    is_declared = built.library is None and request.abi is Abi.C
    expected = unmet(request.task.c_signature, built.report.log) if is_declared else ""
    report = replace(built.report, flags=request.solution.flags)
    return replace(built, report=report, expected=expected)


def _first_that_builds(recipes: Sequence[Recipe], config: SupervisorConfig) -> Built:
    """The library of the first recipe that gives one, or why the last that was tried does not.

    One after the other: a source that is wrong fails with the slim headers in a fifth of the time
    that the full ones take, and side by side all others would pay for both.
    """
    for recipe in recipes:
        if (known := _known(recipe, config)) is not None:
            return known
    spent_s = 0.0
    for recipe in recipes:
        built = build(recipe, config)
        spent_s += built.report.duration_s
        if built.library is not None or _fails_with_any_headers(built):
            break
    return replace(built, report=replace(built.report, duration_s=spent_s))


def _fails_with_any_headers(built: Built) -> bool:
    """Whether time or memory ran out, or device code that the compiler took does not assemble."""
    assembler = re.search("^ptxas .*(?:error|fatal)", built.report.log, re.MULTILINE)
    return built.timed_out or built.memory_exceeded or assembler is not None


def build_shim(signature: Signature, config: SupervisorConfig) -> Path:
    """The library through which the runner calls a function of this signature."""
    flags = ("-std=c++17", "-O2", "-shared", "-fPIC")
    files = {"shim.cpp": shim_source(signature)}
    return build_trusted(Recipe(files, "shim.cpp", DeviceKind.CPU, flags), config)


def build_runner(config: SupervisorConfig) -> Path:
    """The c-ABI runner program for the configured kind of device."""
    files = native_files()
    if config.kind is DeviceKind.CPU:
        flags = ["-O2", "-std=c++17", "-ldl"]  # OpenMP comes with a kernel that uses it
        return build_trusted(Recipe(files, "runner.cpp", config.kind, tuple(flags)), config)
    flags = ["-O2", "-std=c++17", "-DKBENCH_CUDA"]
    files["runner.cu"] = files.pop("runner.cpp")
    flags += [toolchain.for_architecture(cuda_architecture(config.index))]
    flags += [*_EXPORTING, *toolchain.shared_cuda_runtime(), "-ldl"]
    return build_trusted(Recipe(files, "runner.cu", config.kind, tuple(flags)), config)


def build_anchor(config: SupervisorConfig) -> Path:
    """The library of the anchor kernel for the configured kind of device."""
    architecture = cuda_architecture(config.index) if config.kind is DeviceKind.CUDA else ""
    source = f"anchor{config.kind.language.suffix}"
    files = {source: (NATIVE_FOLDER / "anchor.cpp").read_text()}
    flags = tuple(toolchain.flags(config.kind, Abi.C, architecture))
    return build_trusted(Recipe(files, source, config.kind, flags), config)


def build_support(config: SupervisorConfig) -> Path:
    """The library from which the torch runner takes its clock and its cache flush."""
    flags = ("-O2", "-std=c++17", "-fPIC", "-shared")
    return build_trusted(Recipe(native_files(), "support.cpp", DeviceKind.CPU, flags), config)


def build_interposed(config: SupervisorConfig) -> Path | None:
    """The library through which the torch runner's launches pass; None on a CPU."""
    if config.kind is DeviceKind.CPU:
        return None
    flags = ["-O2", "-std=c++17", "-shared", "-Xcompiler=-fPIC", "-Xcompiler=-fvisibility=hidden"]
    flags += ["-cudart=none", "-ldl"]  # which runtime there is, PyTorch decides
    recipe = Recipe(native_files(), "interposed.cpp", config.kind, tuple(flags))
    return build_trusted(recipe, config)


def native_files() -> dict[str, str]:
    """Our own native sources, by name."""
    return {path.name: path.read_text() for path in sorted(NATIVE_FOLDER.iterdir())}


def build_trusted(recipe: Recipe, config: SupervisorConfig) -> Path:
    """Compile code of our own, once. Raises `ToolchainError` with the log if that fails."""
    with _alone(recipe, config):
        built = build(recipe, config)
    if built.library is None:
        why = built.why_not(config)
        raise toolchain.ToolchainError(f"cannot build {recipe.source}: {why}\n{built.report.log}")
    return built.library


@contextmanager
def _alone(recipe: Recipe, config: SupervisorConfig) -> Iterator[None]:
    """While another process compiles the same, wait for it: then the result is there."""
    folder = config.cache_folder / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"build-{recipe.key()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def solution_recipes(request: EvaluationRequest, config: SupervisorConfig) -> tuple[Recipe, ...]:
    """How a submission is compiled: ways to try in order, which differ in nothing but time.

    A torch extension is tried with `toolchain.TORCH_HEADERS` first, and with torch's own alone
    where those do not do.
    """
    task, kind, solution = request.task, config.kind, request.solution
    if solution.language is Language.PYTHON:
        return (module_recipe(solution, config),)
    source, files = solution.name, solution.texts
    own = tuple(files) if solution.files else ()
    beside = toolchain.beside_flags(kind) if own else ()
    target = cuda_architecture(config.index) if kind is DeviceKind.CUDA else ""
    headers = toolchain.cutlass_paths() if kind is DeviceKind.CUDA else ()
    if task.abi is Abi.C:
        flags = [*toolchain.flags(kind, task.abi, target, solution.flags), *beside]
        files[_DECLARATION] = declaration(task.c_signature, kind, solution.source)
        flags += ["-include", _DECLARATION]
        flags.append(toolchain.required_symbol(kind, task.c_signature.symbol))
        flags.append(toolchain.linked(kind, "--no-undefined"))  # else its first call would fail
        return (Recipe(files, source, kind, tuple(flags), headers, is_read=True, own=own),)
    # The version is part of the cache's key.
    version, paths = (
        f'-DKBENCH_TORCH="{toolchain.torch_version()}"',
        (*toolchain.torch_paths(), *headers),
    )
    slim, full = (
        (*toolchain.flags(kind, task.abi, target, solution.flags, slim=slim), *beside, version)
        for slim in (True, False)
    )
    recipe = Recipe(files, source, kind, full, paths, is_read=True, own=own)
    return replace(recipe, files={**files, **toolchain.torch_headers()}, flags=slim), recipe


def build(recipe: Recipe, config: SupervisorConfig) -> Built:
    """Compile unless the cache already holds the result; once more where it is in doubt who failed.

    The second time it is the source. Raises `KilledFromOutside` where it was this host.
    """
    if (known := _known(recipe, config)) is not None:
        return known
    built, content, outputs = _compile(recipe, config)
    if built.in_doubt:
        logger.warning("retrying %s: %s", recipe.step, built.why_not(config))
        built, content, outputs = _compile(recipe, config)
    if content is None:
        return built
    library, record = _places(recipe, config)
    passes.keep(library, outputs, recipe.own)
    write_atomically(library, content, mode=0o755)
    write_atomically(record, encode(built.report))
    return replace(built, library=library)


def _places(recipe: Recipe, config: SupervisorConfig) -> tuple[Path, Path]:
    folder = config.cache_folder / "builds" / recipe.key()
    return folder / recipe.result, folder / "report.json"


def _known(recipe: Recipe, config: SupervisorConfig) -> Built | None:
    """What the cache holds of a recipe."""
    library, record = _places(recipe, config)
    if not (library.exists() and record.exists()):
        return None
    os.utime(record)  # what was asked for lately stays: see `eviction`
    report = decode(BuildReport, read_json(record))
    return Built(replace(report, cached=True, duration_s=0.0), library)


def build_jail(recipe: Recipe, config: SupervisorConfig) -> Jail:
    """Where a recipe's compiler runs, its files beside it."""
    return Jail(
        limits=build_limits(config),
        paths=recipe.paths,
        files=recipe.files,
        environment=recipe.environment,
    )


def _taken(name: str, descriptor: int, result: str) -> str:
    """Shell that hands a file out of the jail; of all but the result, there may be none."""
    taken = f"head -c {LIBRARY_LIMIT_BYTES + 1} {name} >&{descriptor}"
    return taken if name == result else f"{{ {taken} || true; }}"


@dataclass(frozen=True)
class _Ran:
    """A compiler that has ended, with its status (None if it took too long) and what it left."""

    child: ChildProcess
    status: int | None
    content: bytes
    outputs: list[bytes]
    in_doubt: bool


def _run(recipe: Recipe, config: SupervisorConfig) -> _Ran:
    names = (recipe.result, *recipe.passes())
    with ExitStack() as stack:
        # The results leave the jail as bytes through inherited descriptors: nothing of the
        # host is writable inside, and no full disk of it makes a source fail.
        files = [stack.enter_context(unnamed(name)).fileno() for name in names]
        given = [_taken(*each, recipe.result) for each in zip(names, files, strict=True)]
        with ChildProcess(
            build_jail(recipe, config),
            ["/bin/bash", "-c", f"set -o pipefail; {' && '.join([recipe.script(), *given])}"],
            jailed=not config.allow_unjailed,
            descriptors=files,
        ) as child:
            status = child.wait(config.build_timeout_s, wanted=recipe.wanted)
            in_doubt = _is_in_doubt(status, child, recipe)
        content, *outputs = (os.pread(file, LIBRARY_LIMIT_BYTES + 1, 0) for file in files)
    return _Ran(child, status, content, outputs, in_doubt)


def _imported(recipe: ModuleRecipe, config: SupervisorConfig, importer: Importer) -> _Ran:
    child = importer.child
    with closing(importer), unnamed(recipe.result) as file, workshop(config) as shop:
        told = handed_over(recipe.form), recipe.direction
        importer.begin(*told, shop.descriptor, file.fileno())
        status = child.wait(config.build_timeout_s)
        in_doubt = _is_in_doubt(status, child, recipe)
        child.kill()  # before its archive is read
        content = os.pread(file.fileno(), LIBRARY_LIMIT_BYTES + 1, 0)
    if status == 0 and len(content) <= LIBRARY_LIMIT_BYTES:
        content = sealed_archive(content, shop, {}, config)
    return _Ran(child, status, content, [], in_doubt)


def _compile(recipe: Recipe, config: SupervisorConfig) -> tuple[Built, bytes | None, list[bytes]]:
    started = time.monotonic()
    if isinstance(recipe, ModuleRecipe):
        ran = _imported(recipe, config, recipe.waiting() or Importer(config))
    else:
        ran = _run(recipe, config)
    child, status, content = ran.child, ran.status, ran.content
    ok = status == 0 and 0 < len(content) <= LIBRARY_LIMIT_BYTES
    log = without_header_warnings(child.output)
    log += _TOO_LARGE if len(content) > LIBRARY_LIMIT_BYTES else ""
    report = BuildReport(
        ok=ok,
        cached=False,
        duration_s=time.monotonic() - started,
        log=shortened(log, LOG_LIMIT_CHARACTERS),
        command=shlex.join(recipe.command()),
        compiler=recipe.compiler,
        digest=recipe.key(),
        resources=kernel_resources(child.output),
    )
    built = Built(
        report,
        None,
        timed_out=status is None,
        memory_exceeded=child.memory_exceeded,
        memory_limit=child.memory_limit,
        crash=name_of(number) if (number := signal_of(status)) else "",
        in_doubt=ran.in_doubt,
        step=recipe.step,
    )
    return built, content if ok else None, ran.outputs


def workshop(config: SupervisorConfig, *, hidden: bool = False) -> Workshop:
    """What compiles for a module's process; hidden: see `extension_recipes`."""

    def make(asked: Extension, wanted: Wanted) -> Made:
        recipes = extension_recipes(asked, config, wanted, hidden=hidden)
        built = _first_that_builds(recipes, config)
        if built.library is None:
            return Made(asked.name, f"error: {built.why_not(config)}\n{built.report.log}", None)
        content = built.library.read_bytes()
        return Made(entry_name(content, asked.name), built.report.log, content)

    return Workshop(make, lambda: TritonCompiler(config))


def sealed_archive(
    content: bytes, shop: Workshop, before: Mapping[str, bytes], config: SupervisorConfig
) -> bytes:
    """What a module's process left of compiled files, with the libraries that were made for it.

    before: what the process was given. Empty where it left no archive.
    """
    try:
        files = taken(content)
    except BadArchive:
        return b""
    claimed = files.pop(PROGRAMS, None)
    files |= {name: library for name, library in before.items() if is_built(name)} | shop.files
    files[PROGRAMS] = asked_again(claimed, before.get(PROGRAMS), files, config)
    return written(files)


def _is_in_doubt(status: int | None, child: ChildProcess, recipe: Recipe) -> bool:
    """Whether somebody else may have ended or stopped the compiler, or a part of it.

    Raises `KilledFromOutside` where there is evidence of it: the kernel has killed for want of
    memory, or the program itself was killed or stopped, and no code of an author runs in it.
    """
    is_stopped = status is None and child.stopped
    is_killed = is_from_outside(status)
    lost_a_part = status not in (0, None) and _KILLED_PART.search(child.output) is not None
    if child.memory_exceeded or not (is_stopped or is_killed or lost_a_part):
        return False
    if is_stopped and not recipe.runs_source:
        raise KilledFromOutside("the compiler took too long: somebody stopped it")
    if (
        (is_killed and not recipe.runs_source)
        or child.killed_from_outside(status)
        or (lost_a_part and child.killed_for_the_host)
    ):
        raise KilledFromOutside(
            "the compiler was killed from outside: did the host run out of memory?"
        )
    return True
