"""Extensions of torch that a module loads: the supervisor compiles them, from their texts alone.

What torch would hand to ninja is sent over a socket while a module is prepared or rehearsed. A
measured process has no socket, and finds what was compiled of the same texts in its archive.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpu_runner.data import asking, codec
from gpu_runner.data.extension import Extension
from gpu_runner.engine.runner.asking import Asking, WorkshopGone

_FILES = 500  # chosen: beside a source; a repository's csrc has fewer
_TEXTS = frozenset(
    ".h .hh .hpp .hxx .cuh .inl .inc .ipp .tpp .c .cc .cpp .cxx .cu .s .S".split()  # noqa: SIM905
)
_FOLDER = re.compile(r"-(?:I|isystem|iquote)")


class Extensions:
    """Compiled extensions, by the key of what was asked for, each in a folder of its own."""

    def __init__(self, folder: Path, workshop: Asking | None = None) -> None:
        """workshop: who compiles; a measured process has nobody."""
        self._folder, self._workshop = folder, workshop
        self._planned: dict[str, Any] = {}
        self._found: dict[tuple[str, str], Path] = {}

    def take_over(self) -> None:
        """From now on, torch's `load` and `load_inline` get their libraries here."""
        from torch.utils import cpp_extension

        for name, ours in {
            "verify_ninja_availability": lambda: None,
            "_write_ninja_file": self._plan,
            "_run_ninja_build": self._build,
            "_import_module_from_library": self._import,
        }.items():
            setattr(cpp_extension, name, ours)

    def _plan(self, path: str, **plan: object) -> None:
        self._planned[os.path.dirname(path)] = plan

    def _build(self, build_directory: str, verbose: bool, error_prefix: str) -> None:  # noqa: FBT001
        plan = self._planned.pop(build_directory)
        asked = _extension(plan, build_directory)
        library = self._known(asked)
        if library is None:
            if self._workshop is None:
                raise NotCompiled(_NOT_COMPILED.format(asked.name))
            library = self._ask(asked, error_prefix, verbose=verbose)
        self._found[build_directory, asked.name] = library

    def _known(self, asked: Extension) -> Path | None:
        return next((self._folder / asked.key()).glob("*.so"), None)

    def _ask(self, asked: Extension, error_prefix: str, *, verbose: bool) -> Path:
        """Have it compiled. Raises `RuntimeError` with the compiler's log, as torch does."""
        assert self._workshop is not None
        content, key = json.dumps(codec.encode(asked)).encode(), asked.key()
        try:
            answer, library = self._workshop.ask(asking.EXTENSION, content, key)
        except WorkshopGone:
            raise RuntimeError(f"{error_prefix}: the compiler has stopped") from None
        if verbose:
            sys.stdout.write(f"{answer['log']}\n")
        if library is None:
            raise RuntimeError(f"{error_prefix}: {answer['log']}")
        place = self._folder / key / f"{answer['name']}.so"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(library)
        return place

    def _import(self, module_name: str, path: str, is_python_module: bool) -> object:  # noqa: FBT001
        """The module, under the name that it was compiled for, or a library for `torch.ops`."""
        library = self._found[path, module_name]
        if not is_python_module:
            import torch

            torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
            return str(library)
        loader = importlib.machinery.ExtensionFileLoader(library.stem, str(library))
        spec = importlib.util.spec_from_file_location(library.stem, library, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module


class NotCompiled(RuntimeError):
    """A measured process asks for an extension that it did not ask for before."""


_NOT_COMPILED = (
    "the extension {!r} was not compiled in advance: a measured process asked for different "
    "texts, flags or folders than the import and the first calls did, so don't let these depend "
    "on anything random"
)


def _extension(plan: dict[str, Any], build_directory: str) -> Extension:
    """What torch would write to build.ninja, with folders of this process under plain names."""
    sources = [os.path.abspath(source) for source in plan["sources"]]
    words = {
        kind: shlex.split(" ".join(plan[name] or ()))
        for kind, name in (
            ("flags", "cflags"),
            ("cuda_flags", "cuda_cflags"),
            ("link_flags", "ldflags"),
        )
    }
    named = [os.path.dirname(source) for source in sources]
    named += [folder for kind in words.values() for folder in _included(kind)]
    folders = dict.fromkeys(f for f in named if _is_ours(f) or f == build_directory)
    aliases = {folder: f"folder{index}" for index, folder in enumerate(folders)}
    files = dict(_texts(aliases, sources))
    return Extension(
        name=os.path.splitext(plan["library_target"])[0],
        files=files,
        sources=tuple(_renamed(source, aliases) for source in sources),
        **{
            kind: tuple(_renamed(word, aliases) for word in found if word != "-shared")
            for kind, found in words.items()
        },
    )


def _included(words: Sequence[str]) -> Iterator[str]:
    """Folders in which a compiler looks for headers."""
    for word, following in pairwise([*words, ""]):
        if match := _FOLDER.match(word):
            yield word[match.end() :] or following


def _is_ours(folder: str) -> bool:
    """Whether a folder was made by this process, rather than installed on the host.

    A whole checkout may be in the host's folder for temporary files, with Python's packages in it.
    """
    path = Path(folder)
    installed = any(path.is_relative_to(prefix) for prefix in (sys.prefix, sys.base_prefix))
    return path.is_relative_to(tempfile.gettempdir()) and not installed


def _renamed(word: str, aliases: dict[str, str]) -> str:
    for folder in sorted(aliases, key=len, reverse=True):
        word = word.replace(folder, aliases[folder])
    return word


def _texts(aliases: dict[str, str], sources: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Sources, and the texts below their folders and below those of headers."""
    count = 0
    for folder in map(Path, aliases):
        is_shared = Path(tempfile.gettempdir()).is_relative_to(folder)  # with what is no text of it
        for path in sorted(folder.glob("*") if is_shared else folder.rglob("*")):
            if path.suffix in _TEXTS and path.is_file() and count < _FILES:
                count += 1
                yield _renamed(str(path), aliases), path.read_text(errors="replace")
    for source in sources:
        yield _renamed(source, aliases), Path(source).read_text(errors="replace")
