"""The cache of builds stays below its size, and what may be in use stays in it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.build import build
from gpu_runner.supervisor.build.eviction import IN_USE_S, evict
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

DAY = IN_USE_S


def add(builds: Path, name: str, age_s: float, size: int = 1000) -> Path:
    folder = builds / name
    folder.mkdir(parents=True)
    (folder / "library.so").write_bytes(bytes(size - 2))
    (folder / "report.json").write_text("{}")
    age(folder, age_s)
    return folder


def age(folder: Path, age_s: float) -> None:
    then = time.time() - age_s
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))


def left(builds: Path) -> set[str]:
    return {folder.name for folder in builds.iterdir()}


def test_the_oldest_go_and_what_was_asked_for_today_stays(tmp_path: Path) -> None:
    add(tmp_path, "today", 0.9 * DAY, size=5000)
    old = add(tmp_path, "asked for again", 9 * DAY)
    os.utime(old / "report.json")
    add(tmp_path, "old", 9 * DAY)
    assert evict(tmp_path, 0) == 1
    assert left(tmp_path) == {"today", "asked for again"}
    assert evict(tmp_path / "builds", 0) == 0  # there is none
    builds = tmp_path / "others"
    for days in (2, 5, 3, 4):
        add(builds, f"{days} days", days * DAY)
    (builds / "begun").mkdir()
    assert evict(builds, 2000) == 2
    assert left(builds) == {"2 days", "3 days", "begun"}
    assert evict(builds, 2000) == 0


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
def test_a_build_that_is_found_counts_as_asked_for(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    recipe = Recipe({"a.cpp": "int a;"}, "a.cpp", DeviceKind.CPU, ("-shared", "-fPIC"))
    first = build(recipe, config)
    assert first.library is not None
    age(first.library.parent, 3 * DAY)
    assert build(recipe, config).report.cached
    assert evict(tmp_path / "builds", 0) == 0
    age(first.library.parent, 3 * DAY)
    assert evict(tmp_path / "builds", 0) == 1
    assert not build(recipe, config).report.cached
