"""The documents in the order in which people need them."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_app.documents import Document, documents

SHELVES = {
    "Start here": {
        "first-kernel": "Write a softmax, see it rejected, fix it, and put it on the board.",
        "first-run": "Let a search look for a faster kernel while you watch.",
        "lab-site": "Start a site that your colleagues can reach, and add a GPU.",
    },
    "Understand a result": {
        "results": "What verdicts, times, intervals, baselines and scores mean.",
        "boards": "Kinds of boards, filters, downloads, and boards on other sites.",
        "integrity": "What stops a kernel that cheats, and what doesn't.",
        "bounds": "How far an output may be from the reference, and why.",
        "reports": "Faults reported in other benchmarks, and how kbench tests for them.",
        "glossary": "Every term on the site and in the API.",
    },
    "Write kernels": {
        "kernels": "Signatures, compilers, flags and headers for CUDA, C++ and Python.",
        "tasks": "The built-in tasks, other formats, and how to write a task.",
        "static-checks": "What kbench looks for in your source, and what happens then.",
        "client": "The command line, the MCP server, and how agents use them.",
    },
    "Optimize and compete": {
        "optimisation": "Strategies, parameters, budgets, and what a run costs.",
        "language-models": "Connect an endpoint, use verifiers, compare runs.",
        "challenges": "Let whole agents compete on the same budget.",
        "searches": "Have kbench judge the kernels of OpenEvolve, ShinkaEvolve or an RL trainer.",
    },
    "Run a site": {
        "operating": "Emergency stops, runners, people, backups, and what to do when things fail.",
        "settings": "All environment variables.",
        "lend-a-gpu": "Connect a GPU to a site, from the cloud, Slurm or your desk.",
        "offline": "Measure on hosts that can't reach the site.",
        "curation": "Propose, review, publish and retire tasks.",
        "soundness": "How kbench proves that wrong kernels fail a task.",
        "benchmarks": "How fast kbench is, and how to measure it yourself.",
        "features": "How features plug in, and how to add or remove one.",
    },
}
"""The shelves, each with its documents and what they are about."""

_FOLDERS = {"decisions": "Decisions", "measurements": "Measurements"}


@dataclass(frozen=True)
class Shelf:
    """Documents for the same purpose, each with its summary, which may be empty."""

    title: str
    rows: list[tuple[Document, str]]
    folded: bool
    """Whether the list is long, and for few readers."""


def shelves() -> list[Shelf]:
    """All documents, each on one shelf."""
    known = {document.name: document for document in documents()}
    found = [
        Shelf(title, [(known[name], summary) for name, summary in pages.items()], folded=False)
        for title, pages in SHELVES.items()
    ]
    for folder, title in _FOLDERS.items():
        pages = [page for name, page in known.items() if name.startswith(f"{folder}/")]
        rows = [(page, "") for page in pages if not page.name.endswith("/README")]
        found.append(Shelf(title, rows, folded=True))
    return found
