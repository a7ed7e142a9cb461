"""Documents are pages whose links lead on, and words explain themselves where they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client

from kbench_web.help.page import SHELVES
from tasks_app.documents import document_names, documents, find_document, terms

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
