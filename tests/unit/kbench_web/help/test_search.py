"""The search finds what somebody may see, and nothing else."""

from __future__ import annotations

import pytest
from django.test import Client

from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def titles(client: Client, question: str) -> list[tuple[str, str]]:
    hits = client.get("/search/suggestions/", {"q": question}).json()["hits"]
    return [(hit["kind"], hit["title"]) for hit in hits]


def test_it_finds_pages_tasks_authors_models_and_documents(client: Client) -> None:
    version = factories.make_task_version(name="row_softmax", title="Softmax of rows")
    factories.make_finished_evaluation(
        task_version=version, agent="softmaxer", language_model="soft-model"
    )
    found = titles(client, "soft")
    assert ("Task", "row_softmax") in found
    assert ("Agent", "softmaxer") in found
    assert ("Language model", "soft-model") in found
    assert ("Task", "row_softmax") in titles(client, "ROWS soft")
    assert ("Page", "Queue and runners") in titles(client, "queue")
    assert ("Document", "Glossary: Trust") in titles(client, "poison guard")
    assert titles(client, "nosuchwordanywhere") == []
    assert {kind for kind, _ in titles(client, " ")} == {"Page"}
    version.task.state = "retired"
    version.task.save()
    assert ("Task", "row_softmax") not in titles(client, "row_softmax")


def test_private_submissions_and_their_agents_are_their_authors_alone(client: Client) -> None:
    user = factories.make_user()
    evaluation = factories.make_finished_evaluation(user=user, private=True, agent="hidden-agent")
    identity = str(evaluation.submission_id)[:8]
    assert titles(client, "hidden-agent") == titles(client, identity) == []
    client.force_login(factories.make_user())
    assert titles(client, "hidden-agent") == titles(client, identity) == []
    client.force_login(user)
    assert ("Agent", "hidden-agent") in titles(client, "hidden-agent")
    assert titles(client, identity) == [("Submission", identity)]


def test_the_page_says_what_it_found_and_what_not(client: Client) -> None:
    factories.make_task_version(name="row_softmax", title="<b>rows</b>")
    text = client.get("/search/", {"q": "row_soft"}).content.decode()
    assert "/tasks/row_softmax/" in text
    assert "<b>rows</b>" not in text
    for query, is_said in (("?q=zzzyyy", True), ("", False)):
        assert ("Try fewer" in client.get(f"/search/{query}").content.decode()) is is_said
    for path in ("", "suggestions/"):
        assert client.get(f"/search/{path}", {"q": "x" * 201}).status_code == 400
    assert client.post("/search/").status_code == 405
