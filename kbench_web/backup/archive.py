"""The file of a backup: a tar with a manifest that comes first, the database, the secret key.

Nothing is unpacked by a name that stands in it: `unpack` knows the few names that there are.
`content` says what is in a database, so that a copy can be compared with it.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from django.db import DatabaseError

MIGRATIONS = "django_migrations"
_STATISTICS = "sqlite_"
"""SQLite's own tables: it may write them at any time."""


class BackupError(Exception):
    """A backup cannot be made or restored; the text says why, and what to do."""


@dataclass(frozen=True)
class Content:
    """How many rows each table has, and which migrations are applied ("runs_app.0001_initial")."""

    rows: Mapping[str, int]
    migrations: Sequence[str]


def content(cursor: Any, tables: Sequence[str]) -> Content:
    """What is in these tables.

    Call it in one transaction, or nobody may write between two tables.
    """
    rows = {}
    for table in tables:
        if table.startswith(_STATISTICS):
            continue
        cursor.execute(f'SELECT count(*) FROM "{table}"')  # noqa: S608 - the database's own name
        rows[table] = int(cursor.fetchone()[0])
    if MIGRATIONS not in tables:
        return Content(rows, ())
    cursor.execute(f"SELECT app, name FROM {MIGRATIONS} ORDER BY app, name")  # noqa: S608
    return Content(rows, [f"{app}.{name}" for app, name in cursor.fetchall()])


FORMAT = 1
DATABASE, SECRET_KEY = "database", "secret_key"
_MANIFEST = "manifest.json"
_PIECE = 1 << 20
_LONGEST_MANIFEST = 1 << 20
_UNREADABLE = (
    *(tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError),
    *(ValueError, TypeError, KeyError, AttributeError, FileExistsError),
)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a backup says of itself. files: by name, its SHA-256."""

    version: str
    made_at: str
    vendor: str
    migrations: list[str]
    rows: Mapping[str, int]
    files: Mapping[str, str]
    format: int = FORMAT


@contextlib.contextmanager
def workplace(beside: Path) -> Iterator[Path]:
    """A folder that nobody else can read, and that is gone afterwards."""
    if not beside.is_dir():
        raise BackupError(f"there is no folder {beside}; create it first")
    try:
        with tempfile.TemporaryDirectory(dir=beside, prefix=".kbench-backup-") as folder:
            yield Path(folder)
    except (OSError, sqlite3.Error, DatabaseError) as error:
        raise BackupError(f"{beside}: {error}") from error


def write(path: Path, manifest: Manifest, folder: Path) -> None:
    """Write the files of a folder as a backup, whole or not at all; for its owner alone."""
    draft = folder / "draft"
    with draft.open("xb") as raw:
        os.fchmod(raw.fileno(), 0o600)
        with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=6) as tar:
            text = json.dumps(asdict(manifest), indent=1).encode()
            tar.addfile(_member(_MANIFEST, len(text)), io.BytesIO(text))
            for name in manifest.files:
                source = folder / name
                with source.open("rb") as stream:
                    tar.addfile(_member(name, source.stat().st_size), stream)
        raw.flush()
        os.fsync(raw.fileno())
    draft.replace(path)


def unpack(path: Path, folder: Path) -> Manifest:
    """Put a backup's files into a folder; raises `BackupError` unless each is as it was made."""
    try:
        with gzip.open(path) as raw:
            with tarfile.open(fileobj=raw, mode="r:") as tar:
                manifest = _manifest(tar)
                for member in tar:
                    if member.name != _MANIFEST:
                        _unpack_one(tar, member, manifest, folder)
            while raw.read(_PIECE):  # at the end stands a checksum of it all
                pass
        if any(not (folder / name).exists() for name in {DATABASE, *manifest.files}):
            raise ValueError("a file is missing")
    except FileNotFoundError:
        raise BackupError(f"there is no file {path}") from None
    except PermissionError:
        raise BackupError(f"{path} cannot be read: only its owner and root can") from None
    except _UNREADABLE as error:
        raise BackupError(
            f"{path} is damaged, or is not a backup of kbench ({error}); use another one"
        ) from error
    return manifest


def _unpack_one(
    tar: tarfile.TarFile, member: tarfile.TarInfo, manifest: Manifest, folder: Path
) -> None:
    stream = tar.extractfile(member) if member.isreg() else None
    if stream is None or member.name not in (DATABASE, SECRET_KEY):
        raise ValueError(f"{member.name!r} doesn't belong in a backup")
    if _copy(stream, folder / member.name) != manifest.files.get(member.name):
        raise ValueError(f"the checksum of {member.name!r} is wrong")


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _manifest(tar: tarfile.TarFile) -> Manifest:
    first = tar.next()
    stream = tar.extractfile(first) if first is not None and first.name == _MANIFEST else None
    if stream is None:
        raise ValueError("it doesn't begin with a manifest")
    document: dict[str, Any] = json.loads(stream.read(_LONGEST_MANIFEST))
    if document["format"] > FORMAT:
        raise BackupError(
            f"this backup is from kbench {document['version']}, which is newer than this one:"
            " update kbench, then restore it"
        )
    return Manifest(**document)


def _copy(stream: IO[bytes], target: Path) -> str:
    """Copy to a new file; the SHA-256 of what was copied."""
    found = hashlib.sha256()
    with target.open("xb") as copy:
        os.fchmod(copy.fileno(), 0o600)
        while piece := stream.read(_PIECE):
            found.update(piece)
            copy.write(piece)
    return found.hexdigest()


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member
