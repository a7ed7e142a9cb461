"""The folder of a Python kernel: its source, and what compilers made of it, as one archive.

A process with a compiler fills it. Each measured process gets a copy of its own, gone with it.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from pathlib import Path

from gpu_runner.engine.programs import Programs

ARCHIVE_LIMIT_BYTES = 64 << 20  # chosen: as of a built library
MODULE = "kbench_kernel"
"""Name under which a kernel's source is imported."""

_CACHES = {
    "TORCH_EXTENSIONS_DIR": "torch_extensions",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "NUMBA_CACHE_DIR": "numba",
    "CUTE_DSL_CACHE_DIR": "cute",
    "CUDA_CACHE_PATH": "cuda",
}
_SETTINGS = {
    "TRITON_CACHE_AUTOTUNING": "1",  # what was tuned is found again
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no pool of processes that outlives a call
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    "MAX_JOBS": "2",
}


class TooLarge(Exception):
    """What was prepared is larger than an archive may be."""


class Folder:
    """Where a kernel's files are; the same place in every jail, so that caches find their own."""

    def __init__(self) -> None:
        self.root = Path(tempfile.gettempdir()) / "prepared"
        self.root.mkdir(exist_ok=True)

    @property
    def source(self) -> Path:
        """The kernel's source, in a folder without other modules."""
        return self.root / "source" / f"{MODULE}.py"

    @property
    def programs(self) -> Programs:
        """What programs answered."""
        return Programs(self.root / "programs.json")

    def place(self, source: str) -> None:
        """Put the kernel's source there."""
        self.source.parent.mkdir(exist_ok=True)
        self.source.write_text(source, encoding="utf-8")

    def use(self) -> None:
        """Have compilers keep what they make here. Call it before they are imported."""
        os.environ.update({name: str(self.root / part) for name, part in _CACHES.items()})
        os.environ.update(_SETTINGS)

    def pack(self, descriptor: int) -> None:
        """Write all of it as an archive. Raises `TooLarge`."""
        paths = [path for path in sorted(self.root.rglob("*")) if _belongs(path)]
        size = sum(path.stat().st_size for path in paths)
        if size > ARCHIVE_LIMIT_BYTES - len(paths) * 2048:
            limit = f"{ARCHIVE_LIMIT_BYTES >> 20} MiB"
            raise TooLarge(f"what it compiled takes {size >> 20} MiB; the limit is {limit}")
        with (
            os.fdopen(os.dup(descriptor), "wb") as file,
            tarfile.open(fileobj=file, mode="w") as archive,
        ):
            for path in paths:
                name = path.relative_to(self.root).as_posix()
                archive.add(path, name, recursive=False, filter=_whole_seconds)

    def unpack(self, descriptor: int) -> None:
        """Read an archive that `pack` wrote; nothing of it gets outside of the folder."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        with (
            os.fdopen(os.dup(descriptor), "rb") as file,
            tarfile.open(fileobj=file) as archive,
        ):
            archive.extractall(self.root, filter="data")


def _whole_seconds(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Archives round times; an object that seems newer than its log is compiled by ninja again."""
    member.mtime = int(member.mtime)
    return member


def _belongs(path: Path) -> bool:
    """Whether a file is kept; also objects and logs, by which ninja sees that all is done."""
    return path.is_file() and not path.is_symlink() and path.name != "lock"
