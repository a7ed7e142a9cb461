"""requirements.lock pins what pyproject.toml names, to releases that it allows."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def test_every_requirement_has_a_pin_that_it_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins: dict[str, list[str]] = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if not line.startswith("#"):
            pin = Requirement(line)
            assert pin.url is None
            [version] = [each.version for each in pin.specifier if each.operator == "=="]
            pins.setdefault(canonicalize_name(pin.name), []).append(version)
    named = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    for requirement in map(Requirement, named):
        versions = pins[canonicalize_name(requirement.name)]
        assert all(map(requirement.specifier.contains, versions)), requirement
