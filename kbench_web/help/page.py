"""The documents in the order in which people need them."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_app.documents import Document, documents

_SHELVES = {
    "Understand a result": ("results", "boards", "integrity", "bounds", "glossary"),
    "Write kernels": ("kernels", "tasks", "api", "static-checks", "optimisation", "challenges"),
    "Curate tasks": ("curation", "soundness"),
    "Run a site": ("operating", "settings", "language-models", "benchmarks"),
}
_OTHERS = "More"
_FOLDERS = {"decisions": "Decisions", "measurements": "Measurements"}
_SUMMARY_WORDS = 24


@dataclass(frozen=True)
class Shelf:
    """Documents that one needs for the same."""

    title: str
    documents: list[Document]
    folded: bool
    """Whether the list is long, and for few readers."""


def shelves() -> list[Shelf]:
    """All documents, each on one shelf."""
    known = {document.name: document for document in documents()}
    found = [
        Shelf(title, [known.pop(name) for name in names if name in known], folded=False)
        for title, names in _SHELVES.items()
    ]
    rest = [known.pop(name) for name in list(known) if "/" not in name]
    found.append(Shelf(_OTHERS, rest, folded=False))
    for folder, title in _FOLDERS.items():
        names = [name for name in known if name.startswith(f"{folder}/")]
        pages = [known[name] for name in names if not name.endswith("/README")]
        found.append(Shelf(title, pages, folded=True))
    return [shelf for shelf in found if shelf.documents]


def summary(document: Document) -> str:
    """How a document begins."""
    words = document.summary.split()
    return " ".join(words[:_SUMMARY_WORDS]) + ("…" if len(words) > _SUMMARY_WORDS else "")
