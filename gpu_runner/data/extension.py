"""A C++ or CUDA extension that a Python module has compiled: its texts, and how."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError

EXTENSION_LIMIT_BYTES = 8 << 20  # chosen: eight times the longest submission
MOST_FILES = 512  # chosen: a process that has no room for so many descriptors is rare
_SURROGATE = re.compile("[\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z_]\w{0,199}")
_REFUSED = re.compile(r"@|-wrapper|--?specs|-B|-fplugin|-o|-x|--?ccbin|--compiler-bindir|--?optf")
"""Flags by which something else than the compiler would write the library, or another file."""
_PASSED_ON = re.compile(r"(?:-Xcompiler|--compiler-options)=")


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What a module asks for. name: that Python imports. files: text by path.

    sources: those of `files` that are compiled. flags: of g++. cuda_flags: of nvcc. link_flags: of
    g++, which links.
    """

    name: str
    files: Mapping[str, str]
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()
    cuda_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse names and flags that reach outside of the compiler's folder."""
        if not _NAME.fullmatch(self.name):
            raise DataError("name", f"{self.name[:100]!r} is not a valid module name")
        self._check_files()
        if not self.sources or not set(self.sources) <= set(self.files):
            raise DataError("sources", "there is no source to compile")
        for flag in self._flags:
            passed_on = _PASSED_ON.sub("", flag)
            words = [flag] if passed_on == flag else passed_on.split(",")
            if "\0" in flag or any(map(_REFUSED.match, words)):
                raise DataError("flags", f"{flag[:100]!r} can't be passed to the compiler")
        if any(map(_SURROGATE.search, (*self._flags, *self.files, *self.files.values()))):
            raise DataError("files", "some of the text can't be encoded")

    @property
    def _flags(self) -> tuple[str, ...]:
        return (*self.flags, *self.cuda_flags, *self.link_flags)

    def _check_files(self) -> None:
        if len(self.files) > MOST_FILES:
            raise DataError(
                "files", f"there are {len(self.files)} files; the limit is {MOST_FILES}"
            )
        for path in self.files:
            parts = PurePosixPath(path).parts
            # What begins with "-" or "@" is a flag.
            if not parts or path[0] in "/-@" or ".." in parts or "\0" in path:
                raise DataError("files", f"{path[:100]!r} is not a path inside the folder")

    def key(self) -> str:
        """Digest of everything but the name, so that a name drawn at random changes nothing."""
        own = f"-DTORCH_EXTENSION_NAME={self.name}"
        told = codec.encode(self) | {"name": ""}
        for kind in ("flags", "cuda_flags"):
            told[kind] = ["" if flag == own else flag for flag in told[kind]]
        entry = re.compile(rf"\bPyInit_{self.name}\b")
        told["files"] = {path: entry.sub("PyInit_", text) for path, text in self.files.items()}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
