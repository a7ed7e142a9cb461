"""No process outlives those who answer for it."""

from __future__ import annotations

import subprocess
import sys

PRELUDE = "import os, sys, time\nfrom gpu_runner.daemon import lineage\nlineage.adopt_orphans()\n"


def run(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout.split()


def test_orphans_are_killed_and_reaped() -> None:
    code = (
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        time.sleep(60)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "time.sleep(0.2)\n"
        "print(len(lineage.children()), lineage.sweep(), len(lineage.children()))\n"
    )
    assert run(code) == ["1", "1", "0"]


def test_the_dead_are_reaped_but_not_counted_and_others_are_kept() -> None:
    code = (
        "if os.fork() == 0: os._exit(0)\n"
        "kept = os.fork()\n"
        "if kept == 0: time.sleep(60)\n"
        "time.sleep(0.2)\n"
        "print(lineage.sweep(keep=[kept]), list(lineage.children()) == [kept], lineage.sweep())\n"
    )
    assert run(code) == ["0", "True", "1"]
