"""Collected styles and scripts: small, under names that hold their hash, and whole."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import brotli
import pytest
from plotly.offline import get_plotlyjs_version

ROOT = Path(__file__).parents[3]
CHARTS = "vendor/plotly/plotly-basic.min.js"
MOST_CHARTS = 350_000
IMPORT = re.compile(r'(?:\bfrom |\bimport |\bimport\()"([^"]+)"')


def test_the_script_of_charts_is_of_the_release_of_plotly() -> None:
    said = re.search(r"basic - minified\) v([\d.]+)", (ROOT / "static" / CHARTS).read_text()[:300])
    assert said is not None
    assert said[1] == get_plotlyjs_version()


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


def stored(data: Path, name: str) -> Path:
    """The file that is served for `name`."""
    manifest = json.loads((data / "staticfiles" / "staticfiles.json").read_text())
    return data / "staticfiles" / manifest["paths"][name]


def test_the_library_of_charts_is_small(data: Path) -> None:
    plain = stored(data, CHARTS)
    small = plain.with_name(f"{plain.name}.br").read_bytes()
    assert len(small) <= MOST_CHARTS
    assert brotli.decompress(small) == (ROOT / "static" / CHARTS).read_bytes()
    zipped = plain.with_name(f"{plain.name}.gz").read_bytes()
    assert gzip.decompress(zipped) == plain.read_bytes()


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


def test_what_is_compressed_is_not_compressed_again(data: Path) -> None:
    plain = stored(data, CHARTS)
    small = plain.with_name(f"{plain.name}.br")
    before = small.stat().st_ino
    collect(data)
    assert small.stat().st_ino == before
    assert plain.exists()
