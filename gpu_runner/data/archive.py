"""What compilers made of a Python module, as one archive of files by name."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

EXTENSIONS = "extensions"
"""The part that our builder makes. All others come from the process of a submission."""

CACHES = ("inductor", "triton", "numba", "cute", "cuda")
"""Folders of compilers that keep what they made."""

LIBRARIES = (EXTENSIONS, "inductor", "triton", "cute")
"""Parts whose files a process may map as code; all others are read, or code of a GPU."""

PROGRAMS = "programs.json"
"""What programs answered."""

_IMPORTED = (".py", ".pyc", ".pyo", ".pth", ".egg-link")
"""What Python would import or obey; inductor writes its modules anew from its own entries."""

_MADE_AT = 1_000_000_000  # chosen: any moment that is the same for all, since caches compare times


class BadArchive(ValueError):
    """It isn't an archive, or holds more than files."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """One kind of code that a measured process had: how many files, and the digest of them all."""

    part: str
    files: int
    digest: str


def taken(content: bytes) -> dict[str, bytes]:
    """The files of an archive that a submission's process wrote, as far as they may be carried.

    Raises `BadArchive`.
    """
    return {name: data for name, data in _files(content) if _may_be_carried(name)}


def read(content: bytes) -> dict[str, bytes]:
    """The files of an archive that `written` made."""
    return dict(_files(content))


def written(files: Mapping[str, bytes]) -> bytes:
    """An archive that is the same for the same files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(files[name]), _MADE_AT
            archive.addfile(entry, io.BytesIO(files[name]))
    return buffer.getvalue()


def parts(files: Mapping[str, bytes]) -> tuple[Loaded, ...]:
    """How many files each part of an archive has, and their digest."""
    found: dict[str, dict[str, bytes]] = {}
    for name, data in files.items():
        found.setdefault(_part(name), {})[name] = data
    return tuple(loaded(part, found[part]) for part in sorted(found))


def loaded(part: str, files: Mapping[str, bytes]) -> Loaded:
    """These files as one part."""
    return of_digests(part, {name: digest(data) for name, data in files.items()})


def of_digests(part: str, digests: Mapping[str, str]) -> Loaded:
    """As `loaded`, of files whose digests are known."""
    lines = "".join(f"{name}\0{digests[name]}\n" for name in sorted(digests))
    return Loaded(part=part, files=len(digests), digest=digest(lines.encode()))


def is_built(name: str) -> bool:
    """Whether our builder made a file."""
    return _part(name) == EXTENSIONS


def may_be_mapped(name: str) -> bool:
    """Whether a file may be a library that a compiler of kernels loads."""
    return _part(name) in LIBRARIES


def digest(content: bytes) -> str:
    """SHA-256 as hex digits."""
    return hashlib.sha256(content).hexdigest()


def _files(content: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for member in archive:
                if not member.isreg() or member.issparse():
                    raise BadArchive(f"{member.name[:100]!r} is not a plain file")
                file = archive.extractfile(member)
                yield member.name, file.read() if file is not None else b""
    except (tarfile.TarError, OSError, ValueError, ArithmeticError, RecursionError) as error:
        raise BadArchive(str(error)) from error


def _part(name: str) -> str:
    return PurePosixPath(name).parts[0].removesuffix(".json")


def _may_be_carried(name: str) -> bool:
    path = PurePosixPath(name)
    plain = not path.is_absolute() and ".." not in path.parts and name == str(path)
    plain = plain and name.isprintable()  # so that it can be written again
    if not plain or path.name == "lock" or path.suffix in _IMPORTED or "__pycache__" in path.parts:
        return False
    return name == PROGRAMS or (len(path.parts) > 1 and path.parts[0] in CACHES)
