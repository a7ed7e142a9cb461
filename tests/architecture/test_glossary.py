"""docs/glossary.md has every model, every enum and every stage or state, and none that is gone."""

from __future__ import annotations

import re

from tests.architecture.words import ROOT, enums, models

PAGE = (ROOT / "docs" / "glossary.md").read_text()


def section(title: str) -> str:
    """The text below one heading of the glossary."""
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def rows(text: str) -> dict[str, str]:
    """Lines of a table by each name in their first cell."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return {
        name: line for line in lines for name in re.findall(r"`([\w.]+)`", line.split(" | ")[0])
    }


def test_every_model_is_explained() -> None:
    assert len(models()) > 20
    assert set(rows(section("Models of the code"))) == models()


def test_every_enum_is_explained() -> None:
    assert len(enums()) > 30
    assert set(rows(section("Enums of the code"))) == {enum.name for enum in enums()}


def test_every_stage_and_state_is_there() -> None:
    explained = rows(section("Enums of the code"))
    states = [enum for enum in enums() if enum.is_of_steps]
    assert {"Stage", "Status"} <= {enum.name for enum in states}
    missing = [
        f"{enum.name}: {value}"
        for enum in states
        for value in enum.values
        if f"`{value}`" not in explained.get(enum.name, "")
    ]
    assert missing == []
