"""Documents are pages whose links lead on, and words explain themselves where they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.template import Context, Template
from django.test import Client

from kbench_web.help.page import SHELVES
from tasks_app.documents import document_names, documents, find_document, terms

ROOT = Path(__file__).parents[4]
LINK = re.compile(r'href="(/docs/[^"#]*|)(?:#([^"]+))?"')
TERM = re.compile(r'{% term "([^"]+)"')


@pytest.mark.sampled(25)
@pytest.mark.parametrize("name", document_names())
@pytest.mark.django_db
def test_every_document_is_a_page_with_one_heading(client: Client, name: str) -> None:
    answer = client.get(f"/docs/{name}/")
    assert answer.status_code == 200
    assert answer.content.decode().count("<h1") == 1


def test_every_link_between_documents_leads_to_a_heading_that_is_there() -> None:
    pages = {page.address: page for page in documents()}
    followed = 0
    for page in pages.values():
        for address, anchor in LINK.findall(page.html):
            target = pages[address or page.address]
            known = {section.anchor for section in target.sections}
            assert not anchor or anchor in known, (page.name, address, anchor)
            followed += 1
    assert followed > 50


def test_a_link_to_what_is_no_page_is_text() -> None:
    for page in documents():
        assert not re.search(r'href="(?!/|#|https?://|mailto:)', page.html), page.name


@pytest.mark.parametrize("name", ["nothing", "../README", "..%2fREADME", "a/../results", "x" * 300])
@pytest.mark.django_db
def test_what_is_no_document_is_not_found(client: Client, name: str) -> None:
    assert find_document(name) is None
    assert client.get(f"/docs/{name}/").status_code == 404


@pytest.mark.django_db
def test_the_list_has_every_document(client: Client) -> None:
    text = client.get("/docs/").content.decode()
    missing = [page.name for page in documents() if f'href="{page.address}"' not in text]
    assert [name for name in missing if not name.endswith("README")] == []


def test_every_document_has_a_place_and_a_summary() -> None:
    listed = [name for pages in SHELVES.values() for name in pages]
    assert sorted(listed) == [name for name in document_names() if "/" not in name]


def test_a_word_is_explained_where_it_stands() -> None:
    tag = Template('{% load terms %}{% term "floor" "Of limit" %}{% term "floor" %}')
    html = tag.render(Context())
    first, second = re.findall(r'popovertarget="(term-\d+)"', html)
    assert first != second
    assert f'id="{first}" popover>{terms()["floor"]}' in html
    assert ">Of limit</button>" in html


def test_every_word_that_a_template_explains_is_in_the_glossary() -> None:
    used = {
        word
        for path in (ROOT / "templates").rglob("*.html")
        for word in TERM.findall(path.read_text())
    }
    assert len(used) > 5
    assert used - terms().keys() == set()


def test_no_word_is_explained_to_a_pointer_alone() -> None:
    """A title is out of reach for touch and keyboard."""
    hidden = [str(p) for p in (ROOT / "templates").rglob("*.html") if "<abbr" in p.read_text()]
    assert hidden == []
