"""A backup of a site at work is one moment of it, and goes back whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import io
import json
import sqlite3
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.contrib.auth.models import User
from django.db import connection

from kbench_web.backup import archive, services
from kbench_web.backup.archive import BackupError
from tests import factories as make

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, settings: Any) -> Path:
    """A data folder whose secret key counts."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    (settings.DATA_DIR / "secret_key").write_text(site_settings.SECRET_KEY)
    return Path(settings.DATA_DIR)


@contextlib.contextmanager
def another_database(tmp_path: Path) -> Iterator[None]:
    """The site has an empty database instead of its own."""
    own = connection.settings_dict["NAME"]
    name = str(tmp_path / "another.sqlite3")
    if connection.vendor == "postgresql":
        name = "another"
        with connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE another")
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = own
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("DROP DATABASE another")


def backup(path: Path) -> archive.Manifest:
    return services.backup(path, now=make.NOW)


def count(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])


class Writer:
    """Writes pairs of rows, each pair in one transaction, in a thread with its own connection."""

    def __init__(self) -> None:
        self.pairs = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Writer:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE left_side (a integer)")
            cursor.execute("CREATE TABLE right_side (a integer)")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE left_side")
            cursor.execute("DROP TABLE right_side")

    def _write(self) -> None:
        try:
            while not self._over.is_set():
                self._write_pair()
        finally:
            connection.close()  # of this thread

    def _write_pair(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("INSERT INTO left_side VALUES (1)")
            cursor.execute("INSERT INTO right_side VALUES (1)")
            cursor.execute("COMMIT")
        self.pairs += 1


def test_it_comes_back_whole_though_somebody_writes(tmp_path: Path, data: Path) -> None:
    make.make_finished_evaluation(mode="ranked")
    path = tmp_path / "site.tar.gz"
    with Writer() as writer:
        while writer.pairs < 5:
            pass
        before = writer.pairs
        made = backup(path)
        assert writer.pairs > before, "nobody wrote meanwhile"
    assert path.stat().st_mode & 0o777 == 0o600
    (data / "secret_key").write_text("another")
    with another_database(tmp_path):
        assert services.restore(path, replace=False) == made
        assert count("left_side") == count("right_side") >= before
        assert count("runs_app_evaluation") == made.rows["runs_app_evaluation"] > 0
        assert {table: count(table) for table in made.rows} == made.rows
    assert (data / "secret_key").read_text() == site_settings.SECRET_KEY
    assert (data / "secret_key").stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in data.iterdir()) == ["secret_key", "up.lock"]
    assert data.stat().st_mode & 0o777 == 0o700
    if connection.vendor == "sqlite":
        assert (tmp_path / "another.sqlite3").stat().st_mode & 0o777 == 0o600


def test_only_replace_loses_what_is_there(tmp_path: Path) -> None:
    make.make_user(username="before")
    path = tmp_path / "site.tar.gz"
    backup(path)
    make.make_user(username="after")
    with pytest.raises(BackupError, match="not empty, and nothing was changed"):
        services.restore(path, replace=False)
    assert User.objects.filter(username="after").exists()
    with connection.cursor() as cursor:  # a table that the backup does not know goes, too
        cursor.execute("CREATE TABLE newer (a integer REFERENCES auth_user (id))")
    services.restore(path, replace=True)
    assert list(User.objects.values_list("username", flat=True)) == ["before"]
    assert "newer" not in connection.introspection.table_names()


def test_nothing_is_restored_below_a_running_site(tmp_path: Path, data: Path) -> None:
    path = tmp_path / "site.tar.gz"
    backup(path)
    with (data / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BackupError, match="kbench is running with the data in"):
            services.restore(path, replace=True)
    if connection.vendor == "postgresql":
        other = connection.get_new_connection(connection.get_connection_params())
        with contextlib.closing(other), pytest.raises(BackupError, match="1 more connection"):
            services.restore(path, replace=True)


def test_a_failed_backup_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive.os, "fsync", full)
    folder = tmp_path / "backups"
    folder.mkdir()
    with pytest.raises(BackupError, match="No space left on device"):
        backup(folder / "site.tar.gz")
    assert list(folder.iterdir()) == []


def test_a_database_without_a_site_is_not_backed_up(tmp_path: Path) -> None:
    """As in cron, which doesn't know the site's environment."""
    with another_database(tmp_path), pytest.raises(BackupError, match="contains no site"):
        backup(tmp_path / "site.tar.gz")
    assert not (tmp_path / "site.tar.gz").exists()


def rewrite(path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Write an archive again with other members."""
    with tarfile.open(path) as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
    change(members)
    with tarfile.open(path, "w:gz") as tar:
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))


def change_manifest(**fields: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        document = json.loads(members["manifest.json"])
        members["manifest.json"] = json.dumps(document | fields).encode()

    return change


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A backup of a site that has somebody more since."""
    path = tmp_path / "site.tar.gz"
    backup(path)
    make.make_user(username="stays")
    return path


def refused(path: Path, words: str) -> None:
    with pytest.raises(BackupError, match=words):
        services.restore(path, replace=True)
    assert User.objects.filter(username="stays").exists()
    assert not list(path.parent.rglob(".kbench-backup-*"))


class TestRefused:
    def test_a_changed_byte_a_part_of_it_or_another_file(self, path: Path) -> None:
        whole = path.read_bytes()
        for place in (0.0, 0.3, 0.6, 0.999):
            body = bytearray(whole)
            body[int(place * (len(body) - 1))] ^= 0x55
            path.write_bytes(body)
            refused(path, "is damaged")
        for share in (0.0, 0.5, 0.99):
            path.write_bytes(whole[: int(share * len(whole))])
            refused(path, "is damaged")
        path.write_bytes(gzip.compress(b"something else" * 1000))
        refused(path, "not a backup of kbench")

    def test_names_links_and_files_that_do_not_belong_there(self, path: Path) -> None:
        whole = path.read_bytes()
        for name in ("../escaped", "/tmp/escaped", "more", "database/x"):
            path.write_bytes(whole)
            rewrite(path, lambda members, name=name: members.update({name: b"x"}))
            refused(path, "doesn't belong in a backup")
            assert not (path.parent / "escaped").exists()
        plain = path.with_suffix("")
        plain.write_bytes(gzip.decompress(whole))
        with tarfile.open(plain, "a") as tar:
            info = tarfile.TarInfo("secret_key")
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(info)
        path.write_bytes(gzip.compress(plain.read_bytes()))
        refused(path, "doesn't belong in a backup")

    def test_what_is_missing_or_another_than_the_manifest_says(self, path: Path) -> None:
        whole, of_newer = path.read_bytes(), r"from kbench 9\.0, which is newer than this one"
        future = ["runs_app.9999_from_the_future"]
        for change, words in (
            (lambda members: members.pop("database") and None, "a file is missing"),
            (
                lambda members: members.update({"database": b"SQLite format 3"}),
                "checksum of 'database' is wrong",
            ),
            (change_manifest(format=2, version="9.0"), of_newer),
            (change_manifest(version="9.0", migrations=future), of_newer),
            (change_manifest(vendor="oracle"), "comes from oracle, but DATABASE_URL points"),
            (change_manifest(rows={}), "only an empty database"),
        ):
            path.write_bytes(whole)
            rewrite(path, change)
            refused(path, words)
        path.write_bytes(whole)
        rewrite(path, change_manifest(rows={"auth_user": 12345}))  # a copy that lacks a row
        with pytest.raises(BackupError, match="auth_user has 0 rows, not 12345"):
            services.restore(path, replace=True)

    @pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL says so itself")
    def test_a_database_that_is_broken_inside_or_cannot_be_read(
        self, path: Path, tmp_path: Path
    ) -> None:
        with another_database(tmp_path):
            (tmp_path / "another.sqlite3").write_bytes(b"no database" * 1000)
            with pytest.raises(BackupError, match=r"cannot be read .*: move its files away"):
                services.restore(path, replace=True)
        broken = tmp_path / "broken"
        with contextlib.closing(sqlite3.connect(broken)) as made:
            made.execute("CREATE TABLE t (a)")
            made.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 100)
            made.commit()
        body = bytearray(broken.read_bytes())
        body[4096:8192] = b"\xff" * 4096

        def change(members: dict[str, bytes]) -> None:
            broken.write_bytes(body)
            document = json.loads(members["manifest.json"])
            document["files"]["database"] = archive.digest(broken)
            members["manifest.json"] = json.dumps(document).encode()
            members["database"] = bytes(body)

        rewrite(path, change)
        refused(path, "damaged|malformed")

    @pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite takes it as one")
    def test_a_dump_that_fails_half_way(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from kbench_web.backup import postgresql

        whole = postgresql._call

        def call(command: list[str], environment: dict[str, str]) -> None:
            whole(command, environment)
            if command[0] == "pg_restore":
                script = Path(next(w for w in command if "--file=" in w).partition("=")[2])
                script.write_text(script.read_text() + "\nSELECT nothing FROM nowhere;\n")

        monkeypatch.setattr(postgresql, "_call", call)
        refused(path, "psql failed, and nothing was changed")
