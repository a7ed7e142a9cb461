"""Copies of PostgreSQL, by `pg_dump` and `pg_restore`, in one snapshot or one transaction each."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from django.db import connection, transaction
from django.db.backends.postgresql.client import DatabaseClient

from kbench_web.backup.archive import BackupError, Content, content


def dump(target: Path) -> Content:
    """Write a dump of the database into a new file; what the dump holds."""
    with transaction.atomic(), connection.cursor() as cursor:
        # Rows are counted in the very snapshot that is dumped.
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        snapshot = cursor.fetchone()[0]
        options = ["--format=custom", "--compress=0", "--no-owner", "--no-privileges"]
        _run("pg_dump", *options, f"--snapshot={snapshot}", f"--file={target}")
        return content(cursor, connection.introspection.table_names(cursor))


def load(source: Path) -> None:
    """Replace all that is in the database by a dump, in one transaction."""
    script = source.with_name("restore.sql")
    _call(["pg_restore", "--no-owner", "--no-privileges", f"--file={script}", str(source)], {})
    options = ["--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1"]
    tables = ", ".join(map(connection.ops.quote_name, connection.introspection.table_names()))
    drop = [f"--command=DROP TABLE {tables} CASCADE"] if tables else []
    connection.close()
    _run("psql", *options, *drop, f"--file={script}")


def others() -> int:
    """How many other connections to the database there are."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        return int(cursor.fetchone()[0])


def _run(program: str, *options: str) -> None:
    """Run one of PostgreSQL's programs on our database."""
    command, environment = DatabaseClient.settings_to_cmd_args_env(
        connection.settings_dict, list(options)
    )
    _call([program, *command[1:]], environment or {})


def _call(command: list[str], environment: dict[str, str]) -> None:
    program = command[0]
    try:
        done = subprocess.run(
            command, env=os.environ | environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise BackupError(
            f"{program} is not installed; install the PostgreSQL client for the server's version"
            " (Debian: apt-get install postgresql-client)"
        ) from None
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise BackupError(f"{program} failed, and nothing was changed: {said}")
