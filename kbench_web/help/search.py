"""A search over documents, tasks, authors, submissions and runs, as somebody may see them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from django.db.models import Q
from django.urls import reverse

from kbench_web.help.page import shelves
from runs_app.core import features
from runs_app.core.work.access import visible_submissions
from runs_app.optimiser.selectors.authors import visible_agents, visible_language_models
from runs_app.optimiser.selectors.runs import visible_runs
from tasks_app.documents import Section
from tasks_app.pages.task_filter import distance
from tasks_app.people import Viewer
from tasks_app.selectors import published_tasks

LONGEST = 200
"""Characters of a question."""
_OF_EACH = 8
_SNIPPET = 160
_IDENTITY = re.compile(r"[0-9a-f]{6,32}")
_TITLE, _HEADING, _TEXT = 12, 6, 1
"""How much a word counts, by where it is found."""
_MOST_TIMES, _PHRASE = 3, 4
"""How often a word counts in a text, and what the words beside each other add there."""
_PAGES = (
    ("home", "Home", "start front first"),
    ("tasks", "Tasks", "problems kernels"),
    ("leaderboard", "Leaderboard", "boards ranking agents models"),
    ("runs", "Runs", "optimisation"),
    ("run-start", "Start a run", "optimise new"),
    ("submit", "Submit a kernel", "new editor"),
    ("queue", "Queue and runners", "devices waiting"),
    ("language-models", "Language models", "prices calls"),
    ("verifiers", "Verifiers", "votes"),
    ("api-docs", "API", "token curl"),
    ("documents", "Documents", "help manual method glossary"),
    ("account", "Account", "token password profile"),
)


@dataclass(frozen=True)
class Hit:
    """Something that was found."""

    kind: str
    """What it is, in a word for people."""
    title: str
    address: str
    detail: str = ""


def search(question: str, user: Viewer, limit: int = _OF_EACH) -> list[Hit]:
    """What fits all words of the question, by kind; of an empty one, the pages alone."""
    words = question.lower().split()
    if not words:
        return list(_pages(words))
    kinds = (_pages(words), _tasks(words), _authors(words, user), _models(words, user))
    found = [hit for hits in kinds for hit in islice(hits, limit)]
    return found + _identities(words, user) + list(islice(_documents(words), limit))


def _pages(words: Sequence[str]) -> Iterator[Hit]:
    of_features = (page for module in features.modules("search") for page in module.PAGES)
    for name, title, others in (*_PAGES, *of_features):
        text = f"{title} {others}".lower()
        if all(word in text for word in words):
            yield Hit("Page", title, reverse(name))


def _tasks(words: Sequence[str]) -> Iterator[Hit]:
    rows = published_tasks()
    for word in words:
        rows = rows.filter(Q(slug__icontains=word) | Q(title__icontains=word))
    found = list(rows.order_by("slug").values_list("slug", "title"))
    found.sort(key=lambda pair: distance(" ".join(words), *pair))
    for slug, title in found[:_OF_EACH]:
        yield Hit("Task", slug, reverse("task", args=[slug]), title)


def _authors(words: Sequence[str], user: Viewer) -> Iterator[Hit]:
    """Agents and people that `user` may know."""
    rows = visible_agents(user)
    for word in words:
        rows = rows.filter(name__icontains=word)
    for agent in rows.order_by("name")[:_OF_EACH]:
        yield Hit(agent.get_kind_display(), agent.name, agent.get_absolute_url())


def _models(words: Sequence[str], user: Viewer) -> Iterator[Hit]:
    rows = visible_language_models(user)
    for word in words:
        rows = rows.filter(name__icontains=word)
    for model in rows.order_by("name")[:_OF_EACH]:
        yield Hit("Language model", model.name, model.get_absolute_url())


def _identities(words: Sequence[str], user: Viewer) -> list[Hit]:
    """Submissions and runs by the beginning of their id."""
    text = "".join(words).replace("-", "")
    if not _IDENTITY.fullmatch(text):
        return []
    between = (UUID(text.ljust(32, "0")), UUID(text.ljust(32, "f")))
    submissions = visible_submissions(user).filter(pk__range=between)[:_OF_EACH]
    runs = visible_runs(user).filter(pk__range=between)[:_OF_EACH]
    found = [
        Hit("Submission", str(each.pk)[:8], each.get_absolute_url(), each.task_version.task.slug)
        for each in submissions
    ]
    return found + [
        Hit("Run", str(each), each.get_absolute_url(), each.task_version.task.slug) for each in runs
    ]


def _documents(words: Sequence[str]) -> Iterator[Hit]:
    """Sections that hold all words, the best first; those of folders, such as decisions, last."""
    scored = [
        (_score(words, document.title, section), document, section)
        for shelf in shelves()
        for document, _ in shelf.rows
        for section in document.sections
    ]
    scored.sort(key=lambda each: ("/" in each[1].name, -each[0]))  # then as they stand on shelves
    for score, document, section in scored:
        if score:
            anchor = f"#{section.anchor}" if section.level > 1 else ""
            title = document.title if section.level < 2 else f"{document.title}: {section.heading}"
            snippet = _snippet(words, section.text)
            yield Hit("Document", title, document.address + anchor, snippet)


def _score(words: Sequence[str], title: str, section: Section) -> int:
    """0 unless every word occurs; a title counts for the section that opens its document.

    A word counts more where it begins one, and where the question stands as it was asked.
    """
    opening, heading = title.lower() if section.level < 2 else "", section.heading.lower()
    text, scores = section.text.lower(), []
    for word in words:
        begins, whole = (re.compile(rf"\b{re.escape(word)}{end}") for end in ("", r"\b"))
        named = [_TITLE * bool(whole.search(opening)), _HEADING * bool(whole.search(heading))]
        score = sum(named) + _TEXT * sum(word in each for each in (opening, heading, text))
        scores.append(score + _TEXT * len(begins.findall(text)[:_MOST_TIMES]) if score else 0)
    phrase = " ".join(words)
    is_said = len(words) > 1 and (phrase in text or phrase in heading)
    return sum(scores) + _PHRASE * is_said if all(scores) else 0


def _snippet(words: Sequence[str], text: str) -> str:
    """A piece of the text around the first of the words."""
    lower = text.lower()
    at = min((lower.find(word) for word in words if word in lower), default=0)
    start = text.rfind(" ", 0, max(at - _SNIPPET // 4, 0)) + 1
    piece = text[start : start + _SNIPPET]
    before, after = ("… " if start else ""), ("…" if start + _SNIPPET < len(text) else "")
    return f"{before}{piece}{after}"
