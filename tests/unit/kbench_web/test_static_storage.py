"""Collected scripts stand under names that hold their hash, and import each other by them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
IMPORT = re.compile(r'(?:\bfrom |\bimport |\bimport\()"([^"]+)"')


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder into which the files were collected."""
    folder = tmp_path_factory.mktemp("data")
    collect(folder)
    return folder


def collect(folder: Path) -> None:
    """Run `collectstatic` as `manage.py up` does."""
    variables = {"KBENCH_DATA_DIR": str(folder), "KBENCH_COLLECTED_FILES": "1"}
    subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--no-input", "--verbosity", "0"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **variables},
        check=True,
    )


def test_modules_import_what_is_there_by_its_hash(data: Path) -> None:
    """Otherwise a browser would load some of them twice, or keep an old one."""
    folder = data / "staticfiles" / "js"
    modules = sorted(folder.rglob("*.js"))
    imports = [(module, name) for module in modules for name in IMPORT.findall(module.read_text())]
    assert len(modules) > 20
    assert len(imports) > 20
    for module, name in imports:
        assert re.search(r"\.[0-9a-f]{12}\.js$", name), (module.name, name)
        assert (module.parent / name).exists(), (module.name, name)
