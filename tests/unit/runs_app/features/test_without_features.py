"""A site runs without all and without each of its features: that is what makes them features."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(__file__).parents[4]


@pytest.mark.sampled(1)  # no feature imports another, which the import contracts prove
@pytest.mark.parametrize("features", [",".join(settings.FEATURES), *settings.FEATURES])
def test_a_site_works_without(features: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.runs_app.features.walk"],
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
            "DJANGO_SETTINGS_MODULE": "tests.unit.runs_app.features.without",
            "KBENCH_TEST_WITHOUT": features,
            "KBENCH_DATA_DIR": str(tmp_path),
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert failed == [], done.stderr[-3000:]
    assert int(done.stdout.splitlines()[-1].split()[0]) > 80


def test_each_folder_is_in_the_list() -> None:
    folder = ROOT / "runs_app" / "features"
    names = {f"runs_app.features.{path.parent.name}" for path in folder.glob("*/__init__.py")}
    assert set(settings.FEATURES) == names
