"""Small pictures: where their points stand, and what they say; lists read each document once."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from django.db import connection
from django.template import Context, Template
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tasks_app import drawings
from tasks_app import selectors as module
from tasks_app.models import Task
from tasks_app.selectors import directions_of, outlines
from tests import factories as make


def rendered(tag: str, **context: object) -> str:
    return Template("{% load drawing %}" + tag).render(Context(context))


def test_an_interval_is_read_aloud() -> None:
    estimate = SimpleNamespace(value=2.0, low=1.5, high=2.5)
    svg = rendered("{% interval each axis %}", each=estimate, axis=drawings.axis([4.0]))
    assert 'aria-label="2.00×, 95\u00a0%: 1.50 to 2.50"' in svg
    assert 'class="interval faster"' in svg
    for value, low, high, kind in (
        (2.0, 1.8, 2.2, "faster"),
        (0.5, 0.4, 0.6, "slower"),
        (1.1, 0.9, 1.3, "neutral"),
        (1.01, None, None, "neutral"),
        (1.5, None, None, "faster"),
        (0.97, None, None, "slower"),
    ):
        assert drawings.interval(value, low, high, drawings.axis([4.0])).kind == kind
    for tag in ("{% interval each axis %}", "{% interval nobody.speedup axis %}"):
        assert rendered(tag, each=None, axis=drawings.axis([])).strip() == ""


def test_the_words_of_an_axis_never_touch() -> None:
    def words(low: float, high: float) -> list[str]:
        return [word for _, word in drawings.axis([low, high]).ticks()]

    assert words(0.5, 2) == ["1/2×", "1×", "2×"]
    assert words(0.7, 14) == ["1×", "4×", "16×"], "1/2× would touch 1×"
    assert words(2**-20, 2**20).count("1×") == 1


def test_the_words_of_an_axis_are_centered_on_their_places() -> None:
    axis = drawings.axis([1 / 16, 16])
    svg = rendered("{% axis_ticks axis %}", axis=axis)
    told = re.findall(r'x="([0-9.]+)%" y="1em">([^<]+)<', svg)
    assert [words for _, words in told] == ["1/8×", "1×", "8×"], "1/16× has no room at the end"
    assert [float(at) / 100 * axis.width for at, _ in told] == [
        axis.place(ratio) for ratio in (1 / 8, 1, 8)
    ]


def test_a_bar_is_filled_by_its_parts() -> None:
    parts = drawings.stack({("running", "1 runs"): 1, ("people", "0 wait"): 0, ("behind", "x"): 3})
    told = [(part.kind, part.start, part.percent) for part in parts]
    assert told == [("running", 0.0, 25.0), ("behind", 25.0, 75.0)]
    assert drawings.stack({}) == []
    svg = rendered(
        "{% bar parts label %}", parts=drawings.stack({("done", "<b>"): 1}), label='"<i>'
    )
    assert ("<b>" in svg, "<i>" in svg) == (False, False)
    assert re.search(r'aria-label="&quot;&lt;i&gt;"', svg)
    assert drawings.stack({("done", ""): 1}, whole=4)[0].share == 0.25


@pytest.mark.django_db
def test_an_outline_is_what_the_document_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_known", {})
    version = make.make_task_version(description="adds two vectors")
    found = outlines([version.digest, "unknown"])
    workloads = version.document["workloads"]
    hidden = sum(bool(each.get("hidden")) for each in workloads)
    assert list(found) == [version.digest]
    outline = found[version.digest]
    assert (outline.public, outline.hidden) == (len(workloads) - hidden, hidden)
    assert outline.description == "adds two vectors"
    assert directions_of(Task.objects.all()) == {version.task.slug: outline.directions}


@pytest.mark.django_db
def test_a_list_reads_no_document_twice(client: Client) -> None:
    for name in ("one", "two"):
        make.make_task_version(name=name)
    board = "/leaderboard/?device=cpu"
    for address in ("/tasks/", "/api/v1/tasks", "/submit/", "/runs/new/", board):
        assert client.get(address).status_code == 200
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        read = [each["sql"] for each in queries if '"document"' in each["sql"]]
        assert [sql for sql in read if "environment" not in sql] == []  # of a host, not a result
