"""Lists refuse a parameter that they do not know: a filter spelt wrong shows nothing else."""

from __future__ import annotations

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("address", "known"),
    [("/runs/?stategy=evolve", "strategy"), ("/tasks/?senario=llm", "scenario")],
)
def test_a_parameter_spelt_wrong_is_named(address: str, known: str) -> None:
    answer = Client().get(address)
    text = " ".join(answer.content.decode().split())
    assert answer.status_code == 400
    assert f"<code>{address.partition('?')[2].partition('=')[0]}</code>" in text
    assert f"<code>{known}</code>" in text


@pytest.mark.parametrize("address", ["/runs/?strategy=evolve&page=1&mine=1", "/tasks/?q=x&tag="])
def test_what_a_list_knows_is_taken(address: str) -> None:
    assert Client().get(address).status_code == 200
