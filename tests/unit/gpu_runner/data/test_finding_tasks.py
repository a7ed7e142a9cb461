"""Tasks are found by name or path, and nowhere else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import catalog_folder, find_task


def test_tasks_are_found_by_name_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(catalog_folder() / "dot_product", tmp_path / "catalog" / "dot_product")
    monkeypatch.setenv("KBENCH_CATALOG", str(tmp_path / "catalog"))
    assert catalog_folder() == tmp_path / "catalog"
    assert find_task("dot_product").name == "dot_product"
    assert find_task(str(tmp_path / "catalog" / "dot_product")).name == "dot_product"
    with pytest.raises(DataError, match=r"^task: no task or path 'dotproduct'.*dot_product"):
        find_task("dotproduct")
    with pytest.raises(DataError, match=r"none of the 2 built-in tasks in .* similar name$") as far:
        find_task("convolve")
    assert "dot_product" not in str(far.value)


def test_a_name_cannot_lead_out_of_the_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBENCH_CATALOG", str(tmp_path / "catalog"))
    for name in ("..", ".", ""):
        with pytest.raises(DataError):
            find_task(name)


def test_the_catalogue_is_beside_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KBENCH_CATALOG", raising=False)
    assert catalog_folder().parts[-2:] == ("tasks_app", "catalog")
