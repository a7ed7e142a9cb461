"""Make a backup of the running site, and put one back."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import ModuleType

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from kbench_web.backup import archive, postgresql, sqlite
from kbench_web.backup.archive import DATABASE, SECRET_KEY, BackupError, Manifest, content
from kbench_web.client import wheel


def backup(path: Path, *, now: datetime) -> Manifest:
    """Write a backup of the site as it is now; it may be at work. Raises `BackupError`."""
    if path.exists():
        raise BackupError(
            f"{path} already exists; choose a new file name, for example with today's date in it"
        )
    with archive.workplace(path.parent) as folder:
        held = _engine().dump(folder / DATABASE)
        if not _holds_site(held.rows):
            raise BackupError(
                f"the database {connection.settings_dict['NAME']} contains no site; set the site's"
                " own KBENCH_DATA_DIR or DATABASE_URL, in cron as well"
            )
        if _secret_key().exists() and _secret_key().read_text().strip() == settings.SECRET_KEY:
            shutil.copy(_secret_key(), folder / SECRET_KEY)
        manifest = Manifest(
            version=wheel.version(),
            made_at=now.isoformat(timespec="seconds"),
            vendor=connection.vendor,
            migrations=list(held.migrations),
            rows=held.rows,
            files={each.name: archive.digest(each) for each in sorted(folder.iterdir())},
        )
        archive.write(path, manifest, folder)
    return manifest


def restore(path: Path, *, replace: bool) -> Manifest:
    """Put a backup into the site's database, and bring that up to date. Raises `BackupError`.

    A database that is not empty is replaced if `replace` says so, as a whole or not at all.
    """
    data = Path(settings.DATA_DIR)
    data.mkdir(parents=True, exist_ok=True)
    with _nobody_else(data), archive.workplace(data) as folder:
        manifest = archive.unpack(path, folder)
        _check(manifest, replace=replace)
        with contextlib.suppress(PermissionError):  # a mounted volume is whoever's it is
            data.chmod(0o700)
        _engine().load(folder / DATABASE)
        _compare(manifest)
        if SECRET_KEY in manifest.files:
            (folder / SECRET_KEY).replace(_secret_key())
    call_command("migrate", interactive=False, verbosity=0)
    return manifest


def _check(manifest: Manifest, *, replace: bool) -> None:
    """Raise `BackupError` if it does not fit this site."""
    if manifest.vendor != connection.vendor:
        raise BackupError(
            f"this backup comes from {manifest.vendor}, but DATABASE_URL points"
            f" to {connection.vendor}: set it to a {manifest.vendor} database"
        )
    if not _holds_site(manifest.rows):
        raise BackupError("this backup contains only an empty database; use another one")
    loader = MigrationLoader(None)
    known = set(loader.disk_migrations)
    known |= {old for each in loader.disk_migrations.values() for old in each.replaces}
    unknown = sorted(set(manifest.migrations) - {f"{app}.{name}" for app, name in known})
    if unknown:
        raise BackupError(
            f"this backup is from kbench {manifest.version}, which is newer than this one (it has"
            f" the migration {unknown[-1]}): update kbench, then restore it"
        )
    if _tables() and not replace:
        raise BackupError(
            "the database is not empty, and nothing was changed: use --replace to delete its "
            "contents, or set DATABASE_URL or KBENCH_DATA_DIR to an empty one"
        )
    if others := _engine().others():
        raise BackupError(
            f"the database has {others} more connection(s): stop the site, then restore"
        )


def _holds_site(rows: Mapping[str, int]) -> bool:
    """Whether these are a site's tables: a wrong environment names a new, empty database."""
    return User._meta.db_table in rows


def _tables() -> list[str]:
    try:
        return connection.introspection.table_names()
    except DatabaseError as error:
        raise BackupError(
            f"the database cannot be read ({error}): move its files away, or create an empty"
            " one, then restore"
        ) from error


def _compare(manifest: Manifest) -> None:
    """Raise `BackupError` unless each table has as many rows as the backup says."""
    with connection.cursor() as cursor:
        found = content(cursor, connection.introspection.table_names(cursor)).rows
    wrong = sorted(
        f"{table} has {found.get(table, 'no')} rows, not {manifest.rows.get(table, 'any')}"
        for table in found.keys() | manifest.rows.keys()
        if found.get(table) != manifest.rows.get(table)
    )
    if wrong:
        raise BackupError(f"the restored database differs from the backup: {'; '.join(wrong)}")


def _engine() -> ModuleType:
    return sqlite if connection.vendor == "sqlite" else postgresql


def _secret_key() -> Path:
    return Path(settings.DATA_DIR) / "secret_key"


@contextlib.contextmanager
def _nobody_else(data: Path) -> Iterator[None]:
    """Hold the lock of `manage.py up`; raises `BackupError` while that runs."""
    with (data / "up.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"kbench is running with the data in {data}: stop it first") from None
        yield
