"""docs/optimisation.md names every strategy and parameter, and code that exists."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from pathlib import Path

import pytest

from runs_app.optimiser.evolve.judging import VERIFIERS
from runs_app.optimiser.evolve.strategies import STRATEGIES

PAGE = (Path(__file__).parents[5] / "docs" / "optimisation.md").read_text()
TABLE = PAGE.split("| paper and step |")[1].split("### Intended differences")[0]
PROFILE = ("bottleneck", "diagnosis", "hardware")
REFERENCES = sorted(set(re.findall(r"`([a-z_]+(?:\.[A-Za-z_]+)+)`", TABLE)))


def resolved(reference: str) -> object:
    """The object of a dotted name below `runs_app.optimiser.evolve`, or of `core.profile`."""
    names = reference.split(".")
    depth = 2 if names[0] == "strategies" else 1
    package = "runs_app.core.profile" if names[0] in PROFILE else "runs_app.optimiser.evolve"
    module = importlib.import_module(".".join([package, *names[:depth]]))
    return functools.reduce(getattr, names[depth:], module)


@pytest.mark.parametrize("reference", REFERENCES)
def test_the_readers_table_names_functions_that_exist(reference: str) -> None:
    assert callable(resolved(reference))


def test_the_readers_table_has_each_paper() -> None:
    assert len(REFERENCES) > 20
    for paper in ("robust-kbench", "CUDA-LLM", "CUDAMaster"):
        assert f"**{paper}**" in TABLE


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_parameter_is_there_with_its_default(name: str) -> None:
    section = PAGE.split(f"### `{name}`")[1].split("\n##")[0]
    rows = {}
    for names, default in re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", section, re.MULTILINE):
        values = [value.strip(" `") for value in default.split(",")]
        rows.update(zip(re.findall(r"`(\w+)`", names), values, strict=True))
    parameters = STRATEGIES[name].parameters()
    stated = {f.name: str(getattr(parameters, f.name)) for f in dataclasses.fields(parameters)}
    assert rows == {
        key: value.lower() if value == "True" else value for key, value in stated.items()
    }


def test_verifiers_are_named() -> None:
    for verifier in VERIFIERS:
        assert f"`{verifier}`" in PAGE
