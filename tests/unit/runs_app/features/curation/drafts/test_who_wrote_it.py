"""Who wrote hidden workloads: said to admins and on boards; who shows them no more once public."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs_app.features.curation.decisions.services import make_public, retire
from runs_app.features.curation.drafts.services import (
    close_draft,
    edit_draft,
    publish_draft,
    reopen_draft,
    send_to_review,
    take_over,
)
from tasks_app import selectors
from tasks_app.models import Draft
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import example, in_review, shown, signed_in

pytestmark = pytest.mark.django_db

SECRETS = ("n4099", "4099", "# of its author")
MARK = "wrote this task"


@pytest.fixture
def author(client: Client) -> User:
    user = make.make_user(username="ada")
    client.force_login(user)
    return user


@pytest.fixture
def judge() -> User:
    return make.make_admin(username="judge")


def proposed(author: User, name: str = "scaled_sum", **files: str) -> Draft:
    """The example, in review, with a file that lists its sizes."""
    texts = example(name) | {"sizes.json": "[4099]"} | files
    texts["task.toml"] += "# of its author\n"
    return in_review(author, name, **texts)


def page(user: User, address: str) -> str:
    return signed_in(user).get(address).content.decode()


def published(draft: Draft, judge: User) -> Draft:
    publish_draft(draft=draft, user=judge, override="seen by hand", now=make.NOW)
    draft.refresh_from_db()
    return draft


def test_the_admin_who_publishes_is_told_who_wrote_hidden_workloads(
    author: User, judge: User
) -> None:
    draft = proposed(author)
    assert "ada wrote the hidden workloads" in page(judge, draft.get_absolute_url())
    take_over(draft=draft, user=judge, now=make.NOW)
    assert "wrote the hidden workloads" not in page(judge, draft.get_absolute_url())
    own = proposed(judge, "own_sum")
    assert "wrote the hidden workloads" not in page(judge, own.get_absolute_url())


def test_after_publication_an_author_sees_what_everybody_sees(
    client: Client, author: User, judge: User
) -> None:
    draft = proposed(author)
    assert "n4099" in shown(client, draft)
    published(draft, judge)
    for query in ("", "?file=task.toml", "?file=sizes.json", "?file=reference.py"):
        text = shown(client, draft, query)
        assert "only admins can see its hidden workloads" in text
        assert "readonly" in text
        assert not [secret for secret in SECRETS if secret in text]
    answer = client.get(reverse("draft-download", args=[draft.pk]))
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = {name.partition("/")[2] for name in archive.namelist()}
        texts = "".join(archive.read(name).decode() for name in archive.namelist())
    assert {"task.toml", "reference.py"} <= names
    assert "sizes.json" not in names
    assert not [secret for secret in SECRETS if secret in texts]
    assert all(secret in page(judge, draft.get_absolute_url()) for secret in SECRETS)


@pytest.mark.parametrize("hides", [True, False])
def test_after_publication_so_does_an_author_whose_draft_was_taken_over(
    client: Client, author: User, judge: User, hides: bool
) -> None:
    draft = proposed(author)
    take_over(draft=draft, user=judge, now=make.NOW)
    reopen_draft(draft=draft, user=judge, now=make.NOW)
    draft.refresh_from_db()
    text = draft.files["task.toml"] + "# of an admin\n"
    text = text if hides else text.replace("hidden = true\n", "")
    edit_draft(
        draft=draft, user=judge, files=draft.files | {"task.toml": text},
        revision=draft.revision, now=make.NOW,
    )  # fmt: skip
    send_to_review(draft=draft, user=judge, now=make.NOW)
    assert "only admins can see its files, checks and dry runs" in page(
        author, draft.get_absolute_url()
    )
    assert client.get(reverse("draft-download", args=[draft.pk])).status_code == 403
    draft.refresh_from_db()
    published(draft, judge)
    shown = page(author, draft.get_absolute_url())
    assert "readonly" in shown
    assert "only admins can see its files, checks and dry runs" not in shown
    assert ("only admins can see its hidden workloads" in shown) is hides
    assert ("4099" in shown) is not hides
    assert "# of an admin" not in shown
    assert client.get(reverse("draft-download", args=[draft.pk])).status_code == 200


def test_no_part_of_a_published_draft_is_open_to_its_author(
    client: Client, author: User, judge: User
) -> None:
    draft = published(proposed(author), judge)
    posted: dict[str, Any] = {"path": "task.toml", "text": "x", "revision": draft.revision}
    answer = client.post(draft.get_absolute_url(), posted)
    assert answer.status_code == 403
    for name in ("draft-check", "draft-try", "draft-judgements"):
        assert client.post(reverse(name, args=[draft.pk]), {"device": "cpu"}).status_code == 404
    polled = client.get(reverse("draft-findings", args=[draft.pk]), headers={"HX-Request": "true"})
    assert (polled.status_code, "decision on this draft" in polled.content.decode()) == (
        286,
        True,
    )


def test_files_without_hidden_workloads_stay_as_their_author_wrote_them(
    client: Client, author: User, judge: User
) -> None:
    public = example("scaled_sum")["task.toml"].replace("hidden = true\n", "")
    draft = published(proposed(author, **{"task.toml": public}), judge)
    text = shown(client, draft)
    assert "# of its author" in text
    assert "only admins can see all of its files" not in text


def test_a_version_that_was_made_public_of_a_closed_draft_is_no_less_so(
    author: User, judge: User
) -> None:
    draft = proposed(author)
    version, fields = draft.version, {"user": judge, "now": make.NOW}
    assert version is not None
    close_draft(draft=draft, reason="for now", **fields)
    draft.refresh_from_db()
    assert draft.open_to(author)
    make_public(task=version.task, version=version, reason="after all", override="seen", **fields)
    fresh = Draft.objects.get()
    assert (fresh.open_to(author), fresh.shows_public_part(author)) == (False, True)


def test_boards_mark_the_rows_of_who_wrote_the_task(author: User, judge: User) -> None:
    version = published(proposed(author), judge).version
    assert version is not None
    assert selectors.task_writers() == {("scaled_sum", "ada")}
    client = Client()
    grace = make.make_user(username="grace")
    of_leaders = ("/leaderboard/", "/")
    of_all = ("/leaderboard/?task=scaled_sum", "/tasks/scaled_sum/")
    for user, addresses in ((author, of_leaders), (grace, of_all)):
        fields = {"user": user, "mode": "ranked", "agent": f"by-{user.username}"}
        make.make_finished_evaluation(task_version=version, **fields)
        for address in addresses:
            text = client.get(address).content.decode().partition("<tbody")[2]
            row = text.partition("by-ada</a>")[2].partition("</tr>")[0]
            assert MARK in row, address
            assert MARK not in text.partition("by-grace</a>")[2].partition("</tr>")[0]
    rows = client.get("/api/v1/leaderboard?fields=all&task=scaled_sum").json()["rows"]
    assert {row["submitter"]: row["wrote_task"] for row in rows} == {"ada": True, "grace": False}
    retire(task=version.task, user=judge, reason="old", now=make.NOW)
    assert client.get("/tasks/scaled_sum/").content.decode().count(MARK) == 1
