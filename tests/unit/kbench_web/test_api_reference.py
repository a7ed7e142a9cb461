"""The reference says of every operation what the document says."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from kbench_web.api import api
from kbench_web.api_reference import Operation, chapters

pytestmark = pytest.mark.django_db


def operation(anchor: str) -> Operation:
    """One operation by its anchor."""
    every = (each for chapter in chapters(api) for each in chapter.operations)
    return next(each for each in every if each.anchor == anchor)


def test_every_operation_is_on_both_pages() -> None:
    document = api.get_openapi_schema()
    count = sum(len(methods) for methods in document["paths"].values())
    reference = Client().get("/api/v1/docs").content.decode()
    overview = Client().get("/api/").content.decode()
    anchors = re.findall(r'<details class="panel" id="([^"]+)"', reference)
    assert len(anchors) == len(set(anchors)) == count
    assert set(re.findall(r'href="/api/v1/docs#([^"]+)"', overview)) == set(anchors)
    assert reference.count("<h1") == 1


def test_fields_have_types_limits_and_defaults() -> None:
    start = operation("post-runs")
    fields = {field.name: field for field in start.body}
    assert start.needs_token
    assert fields["task"].required
    assert fields["direction"].kind == "forward, backward"
    assert fields["direction"].default == '"forward"'
    assert fields["concurrent_asks"].kind == "whole number, 1 to 16"
    assert fields["temperatures"].kind == "list of number, 0 to 2.0"
    assert fields["private"].kind == "flag"
    assert fields["budget"].kind.startswith("object: usd, tokens")
    assert {401, 404, 409, 413, 422, 429} <= set(start.refusals)


def test_answers_say_what_they_hold() -> None:
    (answer,) = operation("get-tasks").answers
    assert (answer.status, answer.is_list) == (200, True)
    assert "directions" in [field.name for field in answer.fields]
    (board,) = operation("get-leaderboard").answers
    assert board.media.startswith("JSON or CSV")
    assert not operation("get-tasks").needs_token
    parameters = {field.name: field for field in operation("get-leaderboard").parameters}
    assert {"submission", "agent", "model"} <= set(parameters["by"].kind.split(", "))
