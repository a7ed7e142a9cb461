"""Documents are pages, words explain themselves, and the search finds what somebody may see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client

from kbench_web.help.page import SHELVES
from tasks_app.documents import document_names, documents, find_document, terms
from tests import factories

ROOT = Path(__file__).parents[4]
LINK = re.compile(r'href="(/docs/[^"#]*|)(?:#([^"]+))?"')
TERM = re.compile(r'{% term "([^"]+)"')


def test_every_link_between_documents_leads_to_a_heading_that_is_there() -> None:
    pages = {page.address: page for page in documents()}
    followed = 0
    for page in pages.values():
        assert not re.search(r'href="(?!/|#|https?://|mailto:)', page.html), page.name
        for address, anchor in LINK.findall(page.html):
            target = pages[address or page.address]
            known = {section.anchor for section in target.sections}
            assert not anchor or anchor in known, (page.name, address, anchor)
            followed += 1
    assert followed > 50


@pytest.mark.django_db
def test_every_document_is_a_page_with_one_heading_and_in_the_list(client: Client) -> None:
    text = client.get("/docs/").content.decode()
    for number, page in enumerate(documents()):
        assert f'href="{page.address}"' in text or page.name.endswith("README")
        if number % 5 == 0:  # they are all shown alike
            assert client.get(page.address).content.decode().count("<h1") == 1, page.name
    listed = [name for pages in SHELVES.values() for name in pages]
    assert sorted(listed) == [name for name in document_names() if "/" not in name]
    for name in ("nothing", "../README", "..%2fREADME", "a/../results", "x" * 300):
        assert find_document(name) is None
        assert client.get(f"/docs/{name}/").status_code == 404


def test_every_word_that_a_template_explains_is_in_the_glossary() -> None:
    texts = [path.read_text() for path in (ROOT / "templates").rglob("*.html")]
    used = {word for text in texts for word in TERM.findall(text)}
    assert len(used) > 5
    assert used - terms().keys() == set()
    assert not any("<abbr" in text for text in texts), "a title is out of reach for touch"


def titles(client: Client, question: str) -> list[tuple[str, str]]:
    hits = client.get("/search/suggestions/", {"q": question}).json()["hits"]
    return [(hit["kind"], hit["title"]) for hit in hits]


@pytest.mark.django_db
@pytest.mark.usefixtures("jobs")
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


@pytest.mark.django_db
@pytest.mark.usefixtures("jobs")
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


@pytest.mark.django_db
@pytest.mark.usefixtures("jobs")
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
