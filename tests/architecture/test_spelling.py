"""What people read on pages is in American English."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.texts import python_texts, script_texts, template_texts
from tests.architecture.words import ROOT, SITE

_READERS = {".html": template_texts, ".txt": template_texts, ".py": python_texts,
            ".js": script_texts}  # fmt: skip
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
    shown = _READERS[path.suffix](path.read_text())
    texts = [text for _, text in shown if re.search(r"^[A-Z][a-z]|\s", text)]
    return [found[1] for text in texts for found in _BRITISH.finditer(text) if "/" not in text]


@pytest.mark.parametrize("root", [*SITE, "gpu_runner", "kbench_client", "templates", "static/js"])
def test_texts_of_the_interface_are_american(root: str) -> None:
    files = [path for path in sorted((ROOT / root).rglob("*")) if path.suffix in _READERS]
    read = [path for path in files if _SKIPPED.isdisjoint(path.parts)]
    assert read
    found = {str(path.relative_to(ROOT)): british(path) for path in read}
    assert {name: words for name, words in found.items() if words != _NAMES.get(name, [])} == {}
