"""The folder of a Python kernel: its source, and what compilers made of it.

The supervisor hands over the source at every start. Compiled files alone travel in an archive.
"""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
from pathlib import Path

from gpu_runner.data.archive import CACHES, EXTENSIONS, PROGRAMS
from gpu_runner.data.normal_form import NormalForm
from gpu_runner.engine.runner.asking import Asking
from gpu_runner.engine.runner.extensions import Extensions
from gpu_runner.engine.runner.programs import Programs

ARCHIVE_LIMIT_BYTES = 64 << 20  # chosen: as of a built library
MODULE = "kbench_kernel"
"""Name under which a kernel's source is imported."""

_VARIABLES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "NUMBA_CACHE_DIR": "numba",
    "CUTE_DSL_CACHE_DIR": "cute",
    "CUDA_CACHE_PATH": "cuda",
}
_SETTINGS = {
    "TRITON_CACHE_AUTOTUNING": "1",  # what was tuned is found again
    "MAX_JOBS": "2",
}
_WRITTEN_AT = 1_000_000_000  # chosen: numba compares this time, and so it's the same everywhere


class TooLarge(Exception):
    """What was prepared is larger than an archive may be."""


class Folder:
    """Where a kernel's files are; the same place in every jail, so that caches find their own."""

    def __init__(self) -> None:
        self.root = Path(tempfile.gettempdir()) / "prepared"
        self.root.mkdir(exist_ok=True)

    @property
    def source(self) -> Path:
        """The kernel's source, in a folder with no files but its own."""
        return self.root / "source" / f"{MODULE}.py"

    @property
    def programs(self) -> Programs:
        """What programs answered."""
        return Programs(self.root / PROGRAMS)

    def extensions(self, workshop: Asking | None = None) -> Extensions:
        """Compiled extensions of torch; workshop: see `Extensions`."""
        return Extensions(self.root / EXTENSIONS, workshop)

    def place(self, form: NormalForm) -> None:
        """Put the texts there, for whoever reads its own functions or the files beside it."""
        for name, text in {self.source.name: form.text, **form.files}.items():
            path = self.source.parent / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            os.utime(path, (_WRITTEN_AT, _WRITTEN_AT))

    def use(self) -> None:
        """Have compilers keep what they make here. Call it before they are imported."""
        os.environ.update({name: str(self.root / part) for name, part in _VARIABLES.items()})
        os.environ["TORCH_EXTENSIONS_DIR"] = str(self.root / "texts")  # which aren't kept
        os.environ.update(_SETTINGS)

    def pack(self, descriptor: int) -> None:
        """Write what compilers made as an archive. Raises `TooLarge`."""
        paths = [path for path in sorted(self.root.rglob("*")) if self._belongs(path)]
        size = sum(path.stat().st_size for path in paths)
        if size > ARCHIVE_LIMIT_BYTES - len(paths) * 2048:
            limit = f"{ARCHIVE_LIMIT_BYTES >> 20} MiB"
            raise TooLarge(f"what it compiled takes {size >> 20} MiB; the limit is {limit}")
        with (
            os.fdopen(os.dup(descriptor), "wb") as file,
            tarfile.open(fileobj=file, mode="w") as archive,
        ):
            for path in paths:
                archive.add(path, path.relative_to(self.root).as_posix(), recursive=False)

    def unpack(self, descriptor: int) -> None:
        """Read an archive from the supervisor; nothing of it gets outside of the folder."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        with (
            os.fdopen(os.dup(descriptor), "rb") as file,
            tarfile.open(fileobj=file) as archive,
        ):
            archive.extractall(self.root, filter="data")

    def _belongs(self, path: Path) -> bool:
        part = path.relative_to(self.root).parts[0]
        return (part in CACHES or part == PROGRAMS) and path.is_file() and not path.is_symlink()


def form_of(descriptor: int) -> NormalForm:
    """What the supervisor hands over as the source."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        told = json.load(file)
    return NormalForm(**{**told, "lines": tuple(told["lines"])})
