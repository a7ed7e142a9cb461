"""Looks at a built library for what a kernel does not need: a tripwire, and never a verdict."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.archive import EXTENSIONS
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.static import (
    Code,
    code_suspicions,
    modules_suspicions,
    most,
    symbol_sentence,
    torch_symbol_sentence,
)
from gpu_runner.data.verdict import Abi, Language
from gpu_runner.supervisor.build import elf
from gpu_runner.supervisor.build.build import LIBRARY_LIMIT_BYTES
from gpu_runner.supervisor.build.elf import Library, NotALibrary
from gpu_runner.supervisor.build.passes import own_code
from gpu_runner.supervisor.device import toolchain

_NEEDED = re.compile(
    r"(?:libc|libm|libmvec|libpthread|libdl|librt|libstdc\+\+|libgcc_s|libgomp|libatomic)\.so\.\d+"
    r"|ld-linux-[\w-]+\.so\.\d+"
)
_NEEDED_CUDA = re.compile(r"libcudart\.so\.\d+")
_NEEDED_TORCH = re.compile(r"lib(?:torch|c10)\w*\.so")
_VENDORS = re.compile(r"lib(?:cublas|cudnn|cusparse|cufft|cusolver|curand|cutensor|nccl)\w*\.so.*")

_NAMED = re.compile(r"'([\w:]+)'")
_CPP_SYMBOLS = re.compile(
    r"_ZNK?St(?:14basic_[io]fstream|13basic_fstream|13basic_filebuf|10filesystem)\w*"
    r"|_ZNSt6thread6detachEv"
)
_LOST_THREADS = {"pthread_detach", "pthread_attr_setdetachstate", "thrd_detach"}
_INTERPOSED = re.compile(
    r"cuda[A-Z]\w*|__cuda\w+|cu[A-Z]\w+|cublas\w+|clock\w*|gettimeofday|time|nanosleep|malloc|calloc"
    r"|realloc|free|posix_memalign|aligned_alloc|mem(?:cpy|move|set|cmp)|mmap|munmap|mprotect|open|close"
    r"|read|write|poll|recv\w*|send\w*|ioctl|pthread_\w+|dl\w+|_dl_\w+|_Unwind_\w+|__cxa_\w+|__libc_\w+"
    r"|GOMP_\w+|omp_\w+|_?exit|abort|kbench_\w+|_Py\w+|Py(?!Init_)\w+|_Zn[aw]m(?!Pv$)\w*|_Zd[al]Pv(?!S_$)\w*"
)
_INITIALISERS = re.compile(
    r"frame_dummy|set_fast_math|__cpu_indicator_init|_GLOBAL__(?:sub_)?I_\w.*|_ZL\d+__sti____cudaRegisterAll.*",
    re.DOTALL,  # a name may hold any character, and is as long as its author likes
)
_STUB_SUFFIX = ".resolver"  # of the function that `target_clones` makes
IMPORTS_LIMIT = 10_000
"""Symbols of other libraries; a torch extension needs some hundreds."""

_EXTENSION = re.compile(rf"{EXTENSIONS}/.*\.so$")
_MAGIC = b"\x7fELF"
_CUDA_MACHINE = 190  # EM_CUDA of elf.h


@dataclass(frozen=True)
class _Inspected:
    library: Library
    request: EvaluationRequest
    is_extension: bool  # that a Python module has built

    @property
    def cuda(self) -> bool:
        return self.is_extension or self.request.solution.language is Language.CUDA

    @property
    def torch(self) -> bool:
        return self.is_extension or self.request.task.abi is Abi.TORCH


def check_library(
    content: bytes, request: EvaluationRequest, *, is_extension: bool = False
) -> tuple[Suspicion, ...]:
    """What a person should look at in a built library, by `most`.

    Each reason begins with the name of what was looked at. It is read in this process: the
    reader is bounded struct reads over bytes, so that a hostile file can at worst be refused, and
    a file that is refused is suspicious for that. Takes some ms.
    """
    found: list[Suspicion] = []
    try:
        inspected = _Inspected(Library(content), request, is_extension)
        for _, look in LIBRARY_RULES:
            found += [_suspicion(reason, request) for reason in dict.fromkeys(look(inspected))]
    except NotALibrary as error:
        reason = f"unreadable: the library cannot be read: {error}"
        found.insert(0, Suspicion(check=Check.LIBRARY, reason=reason))
    return tuple(most(found))


def _suspicion(reason: str, request: EvaluationRequest) -> Suspicion:
    """With the line of the source that names what the reason names first, if there is one."""
    named = _NAMED.search(reason)
    word = named[1].rpartition("::")[2] if named else ""
    code = Code.joined(request.solution.texts)
    found = re.search(rf"\b{re.escape(word)}\b", code.text) if word else None
    file, line = code.place(found.start()) if found else ("", None)
    return Suspicion(check=Check.LIBRARY, reason=reason[:500], line=line, file=file)


def _needed(inspected: _Inspected) -> Iterator[str]:
    patterns = [_NEEDED]
    patterns += [_NEEDED_CUDA] * inspected.cuda + [_NEEDED_TORCH] * inspected.torch
    patterns += [_VENDORS] * inspected.request.task.libraries
    for name in inspected.library.names(elf.NEEDED):
        if not any(pattern.fullmatch(name) for pattern in patterns):
            yield f"needed: links {name!r}, which kernels don't get"


def _folders(inspected: _Inspected) -> Iterator[str]:
    flag = "-Xlinker=-rpath="
    ours: set[str] = set()
    if inspected.cuda:
        known = toolchain.shared_cuda_runtime()
        ours = {f.removeprefix(flag) for f in known if f.startswith(flag)}
    for tag, name in ((elf.RPATH, "RPATH"), (elf.RUNPATH, "RUNPATH")):
        for value in inspected.library.names(tag):
            if strange := [folder for folder in value.split(":") if folder not in ours]:
                yield f"search-path: its {name} is {strange[0]!r}"
    if any(tag in elf.AUDITORS for tag, _ in inspected.library.dynamic):
        yield "search-path: it asks the loader for an auditor or a filter"


def _imports(inspected: _Inspected) -> Iterator[str]:
    libraries = inspected.request.task.libraries
    names = [symbol.name for symbol in inspected.library.symbols if not symbol.defined]
    if len(names) > IMPORTS_LIMIT:
        yield f"import: it needs {len(names)} symbols"
    for name in names[:IMPORTS_LIMIT]:
        reason = symbol_sentence(name, libraries=libraries)
        if not reason and inspected.torch:
            reason = torch_symbol_sentence(name, libraries=libraries)
        if not reason and (_CPP_SYMBOLS.fullmatch(name) or name in _LOST_THREADS):
            reason = f"it needs {name!r}"
        if reason:
            yield f"import: {reason}"


def _exports(inspected: _Inspected) -> Iterator[str]:
    for symbol in inspected.library.symbols:
        if symbol.defined and _INTERPOSED.fullmatch(symbol.name):
            yield f"export: defines {symbol.name!r}, which belongs to another library"


def _constructors(inspected: _Inspected) -> Iterator[str]:
    library = inspected.library
    if any(tag == elf.PREINIT_ARRAY for tag, _ in library.dynamic):
        yield "constructor: it has code that runs before anything else"
    for address in library.constructors():
        names = library.local_names.get(address, set())
        if not any(_INITIALISERS.fullmatch(name) for name in names):
            name = min(names, default="without a name")
            yield f"constructor: loading it runs a function {name!r}"


def _indirect(inspected: _Inspected) -> Iterator[str]:
    library = inspected.library
    resolvers = {s.address for s in library.symbols if s.kind == elf.IFUNC and s.defined}
    for address in sorted({*resolvers, *library.indirect()}):
        names = library.local_names.get(address, set())
        if not any(name.endswith(_STUB_SUFFIX) for name in names):
            name = min(names, default="without a name")
            yield f"ifunc: loading it runs {name!r} to choose a function"


def _mapping(inspected: _Inspected) -> Iterator[str]:
    library = inspected.library
    if library.executable_stack:
        yield "mapping: it makes stacks executable"
    if library.writable_code:
        yield "mapping: a part of it is both writable and executable"
    flags = library.entry(elf.FLAGS, 0)
    if flags & elf.FLAG_TEXTREL or any(tag == elf.TEXTREL for tag, _ in library.dynamic):
        yield "mapping: loading it changes its code"


def _embedded(inspected: _Inspected) -> Iterator[str]:
    content = inspected.library.content
    at = content.find(_MAGIC, 1)
    while at >= 0:
        machine = int.from_bytes(content[at + 18 : at + 20], "little")
        if not (inspected.cuda and machine == _CUDA_MACHINE):
            yield "embedded: it contains another program or library"
            return
        at = content.find(_MAGIC, at + 1)


LIBRARY_RULES: tuple[tuple[str, Callable[[_Inspected], Iterator[str]]], ...] = (
    ("needed", _needed),
    ("search-path", _folders),
    ("import", _imports),
    ("export", _exports),
    ("constructor", _constructors),
    ("ifunc", _indirect),
    ("mapping", _mapping),
    ("embedded", _embedded),
)
"""What is looked at, by the word with which a reason begins; beside them, `unreadable`."""


def static_suspicions(request: EvaluationRequest, library: Path) -> list[Suspicion]:
    """What a person should look at in a source and in the library that it became."""
    solution = request.solution
    if solution.language is Language.PYTHON:
        return [*modules_suspicions(solution.texts, request.task), *_extensions(library, request)]
    passes, abi = own_code(library), request.task.abi
    source = code_suspicions(solution.texts, passes, abi, request.task)
    return [*source, *check_library(library.read_bytes(), request)]


def _extensions(archive: Path, request: EvaluationRequest) -> list[Suspicion]:
    """What to look at in the extensions that a Python module has built."""
    found: dict[str, Suspicion] = {}
    try:
        with tarfile.open(archive) as opened:
            for member in opened:
                if member.isfile() and _EXTENSION.match(member.name):
                    file = opened.extractfile(member)
                    content = file.read(LIBRARY_LIMIT_BYTES) if file else b""
                    for suspicion in check_library(content, request, is_extension=True):
                        found.setdefault(suspicion.reason, suspicion)
    except (OSError, tarfile.TarError, ValueError) as error:
        reason = f"unreadable: what it compiled cannot be read: {type(error).__name__}"
        return [Suspicion(check=Check.LIBRARY, reason=reason)]
    return most(found.values())
