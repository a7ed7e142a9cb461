"""Documents and pages: short, in American English, with links that lead on and a whole glossary."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture import decisions, tree
from tests.architecture.prose import (
    COLUMNS,
    MEAN_WORDS,
    anchors,
    links,
    measured,
    wide_lines,
    words,
)
from tests.architecture.texts import SUFFIXES, texts, told_texts
from tests.architecture.words import ROOT, SITE, enums, models
from tests.architecture.wrap import wrapped

DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
README_LINES = 120
ARCHITECTURE_WORDS = 1_500
INTEGRITY_WORDS = 2_500
DECISION_LINES = 40
PICTURE_BYTES = 300_000


def page_id(path: Path) -> str:
    """How a document is called in the names of its tests."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_sentences_are_short(path: Path) -> None:
    prose = measured(path.read_text())
    assert prose.too_long == ()
    assert prose.mean_words <= MEAN_WORDS


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_lines_are_short(path: Path) -> None:
    assert list(wide_lines(path.read_text())) == []


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_links_lead_somewhere(path: Path) -> None:
    """Also to a heading, where they name one."""
    for link in links(path.read_text()):
        name, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = path.parent / name if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text()), link


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_the_architecture_is_short() -> None:
    """The drawn tree and other blocks of code are not counted."""
    assert words(re.sub(r"```.*?```", "", tree.PAGE.read_text(), flags=re.S)) <= ARCHITECTURE_WORDS


def test_integrity_is_short() -> None:
    assert words((DOCS / "integrity.md").read_text()) <= INTEGRITY_WORDS


@pytest.mark.parametrize("path", decisions.pages(), ids=page_id)
def test_a_decision_has_its_form(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= DECISION_LINES
    assert lines[0].startswith("# ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", lines[2])
    headings = [line for line in lines if line.startswith("## ")]
    assert headings == ["## Context", "## Decision", "## Cost"]


def test_decisions_are_numbered_and_listed() -> None:
    """If not: `python -m tests.architecture.decisions` draws the index again."""
    numbers = [page.name[:4] for page in decisions.pages()]
    assert numbers
    assert len(set(numbers)) == len(numbers)
    assert decisions.stored() == decisions.drawn()


def test_measurements_are_listed() -> None:
    pages = [path.name for path in (DOCS / "measurements").glob("*.md")]
    assert pages
    listed = {
        link.split("#")[0].removeprefix("measurements/")
        for link in links((DOCS / "benchmarks.md").read_text())
    }
    assert set(pages) <= listed


def test_the_picture_is_there_and_small() -> None:
    picture = DOCS / "screenshot.png"
    assert 0 < picture.stat().st_size <= PICTURE_BYTES


def test_the_folder_tree_is_up_to_date() -> None:
    """If not: `python -m tests.architecture.tree` draws it again."""
    assert tree.stored(tree.PAGE.read_text()) == tree.drawn()


def test_every_folder_of_the_tree_says_what_it_is_for() -> None:
    assert tree.without_words() == []
    assert [name for name in tree.OTHERS if not (ROOT / name).is_dir()] == []


def test_prose_is_wrapped_and_the_rest_left_alone() -> None:
    item = "- " + "words " * 30
    code = "```\n" + "code " * 30 + "\n```\n"
    text = f"# Title\n\n{item}\n\n{code}"
    lines = wrapped(text).splitlines()
    assert max(len(line) for line in lines[:6]) <= COLUMNS
    assert lines[3].startswith("  words")
    assert wrapped(text).endswith(code)
    assert wrapped(wrapped(text)) == wrapped(text)


def test_a_long_sentence_is_found() -> None:
    """The measure itself: tables and lists count, code is one word."""
    long = "Word" + " word" * 35
    text = f"A short one. {long}.\n\n- {long}.\n\n| `a` | {long} |\n\n```\n{long}\n```\n"
    assert [words(sentence) for sentence in measured(text).too_long] == [36, 36, 36]
    assert measured("Use `a b c d` now. Then `stop`.").mean_words == pytest.approx(2.5)
    assert [number for number, _ in wide_lines("a" * COLUMNS + "\n" + "b" * 101)] == [2]
    assert anchors("# A `b` c?\n## A b c\n") == {"a-b-c", "a-b-c-1"}


_BRITISH = re.compile(
    r"\b(\w*(?:(?:cancel|label|model|travel|signal|tunnel|channel)l(?:ed|ing)"
    r"|(?:optim|organ|recogn|summar|minim|maxim|normal|serial|synchron|initial|vector|quant"
    r"|general|special|real|util|author|custom|parallel)is(?:e|ed|es|ing|ation)"
    r"|(?:col|fav|behavi|neighb|hon|lab)our\w*|analys(?:e|ed|ing)|judgement\w*|catalogue\w*"
    r"|artefact\w*|licence\w*|centre\w*|grey\w*|whilst|learnt))\b",
    re.IGNORECASE,
)
_SKIPPED = {"migrations", "catalog"}
_NAMES = {
    "kbench_web/help/search.py": ["optimise"],  # a word that people may search for
    "leaderboard_app/boards/tables.py": ["labelled", "labelled"],  # a class of styles
    "static/js/draft.js": ["judgement", "judgements"],  # ids of elements
}
"""What is no text of the interface, by file."""


def british(path: Path) -> list[str]:
    """British words in what a file shows; one word in small letters is a value, not a text."""
    shown = [text for _, text in texts(path) if re.search(r"^[A-Z][a-z]|\s", text)]
    return [found[1] for text in shown for found in _BRITISH.finditer(text) if "/" not in text]


def test_docstrings_that_openapi_and_mcp_show_are_texts() -> None:
    source = (
        'class Out(Schema):\n    """One row."""\n\n\ndef _own() -> str:\n    """Not shown."""\n'
    )
    assert list(told_texts(source)) == [(1, "One row.")]


@pytest.mark.parametrize("root", [*SITE, "gpu_runner", "kbench_client", "templates", "static/js"])
def test_texts_of_the_interface_are_american(root: str) -> None:
    files = [path for path in sorted((ROOT / root).rglob("*")) if path.suffix in SUFFIXES]
    read = [path for path in files if _SKIPPED.isdisjoint(path.parts)]
    assert read
    found = {str(path.relative_to(ROOT)): british(path) for path in read}
    assert {name: words for name, words in found.items() if words != _NAMES.get(name, [])} == {}


def test_a_workload_is_listed_and_never_public() -> None:
    files = [path for root in SITE for path in (ROOT / root).rglob("*.py")]
    files += [*(ROOT / "templates").rglob("*.html"), *(ROOT / "runs_app").rglob("*.html")]
    files += [*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "ARCHITECTURE.md"]
    wrong = re.compile(r"\bpublic\s+(?:workload|size)s?\b", re.IGNORECASE)
    assert [page_id(path) for path in files if wrong.search(path.read_text())] == []


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
