"""Nobody answers for a report that came after the page was opened."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from runs_app.features.curation.decisions.services import make_public
from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.services import create_draft, publish_draft, send_to_review
from tasks_app.formats import loader
from tasks_app.models import Draft, Override, Task, TaskVersion
from tasks_app.publishing.services import admit, record_report
from tests import factories as make

pytestmark = pytest.mark.django_db

STALE = "A soundness report has arrived since you opened it: read it, then decide."
OWN_CODE = "made by running the draft's own code"


@pytest.fixture
def desk(client: Client) -> Client:
    """The browser of an admin."""
    client.force_login(make.make_admin(username="judge"))
    return client


def in_review(**author: Any) -> Draft:
    user = make.make_user(**author)
    draft = create_draft(user=user, files=draft_page.example_files(), now=make.NOW)
    return send_to_review(draft=draft, user=user, now=make.NOW)


def found(version: TaskVersion | None, at_s: float, survivors: int = 1) -> None:
    """A check of a runner ends with so many wrong kernels that pass."""
    assert version is not None
    mutants = [
        {"name": f"wrong {number}", "direction": "forward", "workload": "n", "scaled": 2.0,
         "state": "survived" if number < survivors else "failed"}
        for number in range(3)
    ]  # fmt: skip
    document = {
        "task": version.task.slug, "digest": version.digest, "device": "cpu",
        "passed": not survivors, "survivors": [], "mutants": mutants, "filters": [], "honest": [],
    }  # fmt: skip
    report = loader.report_of(document)
    assert record_report(version, report, make.later(at_s), made_here=True)


def values(text: str) -> list[str]:
    """What the forms of a page say of the reports that it shows."""
    parts = text.split('name="reports" value="')[1:]
    return [part.partition('"')[0] for part in parts]


def test_an_override_does_not_answer_for_what_nobody_saw(desk: Client) -> None:
    draft = in_review()
    seen = values(desk.get(draft.get_absolute_url()).content.decode())
    assert set(seen) == {""}
    found(draft.version, 5)
    form = {"action": "override", "reason": "two people read it", "revision": draft.revision}
    form |= {"replaces": "0"}
    for posted in (form, form | {"reports": seen[0]}):
        refused = desk.post(reverse("draft-act", args=[draft.pk]), posted)
        assert refused.status_code == 422
        assert STALE in refused.content.decode()
        assert "two people read it" in refused.content.decode()
    assert not Override.objects.exists()
    assert Task.objects.get().state == "review"
    [now, *_] = set(values(refused.content.decode()))
    found(draft.version, 9, survivors=2)  # another one in place of it
    stale = desk.post(reverse("draft-act", args=[draft.pk]), form | {"reports": now})
    [newest] = set(values(stale.content.decode()))
    assert (stale.status_code, newest != now) == (422, True)
    done = desk.post(reverse("draft-act", args=[draft.pk]), form | {"reports": newest})
    assert (done.status_code, Override.objects.get().reason) == (302, "two people read it")


def test_a_report_that_waited_for_the_decision_is_not_answered_by_it() -> None:
    """What its sender took for now was before; it was stored behind the version's lock."""
    draft = in_review()
    publish_draft(
        draft=draft, user=make.make_admin(), override="nobody checked it", now=make.later(5)
    )
    version = TaskVersion.objects.get()
    assert version.unproven == ""
    found(version, 4)
    assert "1 of 3 wrong kernels pass it" in version.unproven


@pytest.mark.parametrize("command", [False, True])
def test_an_override_answers_for_a_report_of_a_clock_that_is_ahead(command: bool) -> None:
    version = admit(data=make.make_task(), now=make.NOW).version
    found(version, 8)
    now = make.later(5)
    if command:
        admit(data=make.make_task(), override="read", now=now)
    else:
        make_public(
            task=version.task, version=version, user=make.make_admin(), reason="good",
            override="read", reports=version.evidence, now=now,
        )  # fmt: skip
    version = TaskVersion.objects.get()
    assert version.task.state == "published"
    assert version.unproven == ""
    found(version, 6, survivors=2)  # and for none that comes after
    assert "2 of 3 wrong kernels pass it" in version.unproven


def test_making_a_version_public_asks_for_the_same(desk: Client) -> None:
    version = admit(data=make.make_task(), now=make.NOW).version
    [seen] = values(desk.get("/tasks/scale/curate/").content.decode())
    found(version, 5)
    form = {"action": "make-public", "version": "1", "reason": "read", "override": "1"}
    refused = desk.post("/tasks/scale/curate/", form | {"reports": seen}).content.decode()
    assert "a soundness report has arrived since you opened it" in refused
    assert not Override.objects.exists()
    [now] = values(refused)
    assert desk.post("/tasks/scale/curate/", form | {"reports": now}).status_code == 302
    assert Override.objects.get().reason == "read"


def test_an_admin_is_reminded_that_a_strangers_report_is_of_the_strangers_code(
    desk: Client,
) -> None:
    draft = in_review()
    assert OWN_CODE not in desk.get(draft.get_absolute_url()).content.decode()
    found(draft.version, 5, survivors=0)
    assert OWN_CODE in desk.get(draft.get_absolute_url()).content.decode()
    draft.author.is_staff = True
    draft.author.save()
    assert OWN_CODE not in desk.get(draft.get_absolute_url()).content.decode()
