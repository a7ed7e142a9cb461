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
            raise DataError("name", f"{self.name[:100]!r} is not a name of a module")
        for path in self.files:
            parts = PurePosixPath(path).parts
            if not parts or path.startswith("/") or ".." in parts or "\0" in path:
                raise DataError("files", f"{path[:100]!r} is not a path within a folder")
        if not self.sources or not set(self.sources) <= set(self.files):
            raise DataError("sources", "there is no source to compile")
        for flag in (*self.flags, *self.cuda_flags, *self.link_flags):
            passed_on = _PASSED_ON.sub("", flag)
            words = [flag] if passed_on == flag else passed_on.split(",")
            if any(map(_REFUSED.match, words)):
                raise DataError("flags", f"{flag[:100]!r} can't be passed to the compiler")

    def key(self) -> str:
        """Digest of everything but the name, so that a name drawn at random changes nothing."""
        own = f"-DTORCH_EXTENSION_NAME={self.name}"
        told = codec.encode(self) | {"name": ""}
        for kind in ("flags", "cuda_flags"):
            told[kind] = ["" if flag == own else flag for flag in told[kind]]
        entry = re.compile(rf"\bPyInit_{self.name}\b")
        told["files"] = {path: entry.sub("PyInit_", text) for path, text in self.files.items()}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
