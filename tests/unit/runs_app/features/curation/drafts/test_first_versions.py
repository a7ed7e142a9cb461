"""Versions in review: what pages tell, and that nobody answers for what came later."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from gpu_runner.data.verdict import DeviceKind
from runs_app.core.messaging import orders
from runs_app.features.curation.decisions.services import make_public, retire
from runs_app.features.curation.drafts.services import close_draft, copy_version, publish_draft
from runs_app.models import TaskCheck
from tasks_app.formats import loader
from tasks_app.models import Draft, Override, Task, TaskVersion
from tasks_app.publishing.services import admit, record_report
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import (
    act,
    created,
    edited,
    example,
    in_review,
    shown,
    signed_in,
)

pytestmark = pytest.mark.django_db

SLUG = "scaled_sum"
BULK: dict[str, Any] = {"task": [SLUG], "device": "cpu", "back": "/curate/", "reason": "it is time"}


@pytest.fixture
def judge(client: Client) -> User:
    """An admin, who is signed in."""
    user = make.make_admin(username="judge")
    client.force_login(user)
    return user


@pytest.fixture
def draft(monkeypatch: pytest.MonkeyPatch) -> Draft:
    """The draft of somebody else, in review; a device could check it."""
    monkeypatch.setattr(orders, "enqueue", lambda *args, **kwargs: True)
    make.make_cpu()
    return in_review(make.make_user(username="ada"), SLUG)


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_a_first_version_is_checked_in_bulk_and_published_on_its_draft(
    client: Client, judge: User, draft: Draft
) -> None:
    client.post("/curate/check/", BULK)
    assert TaskCheck.objects.get().version == draft.version
    text = client.post("/curate/bulk/", BULK | {"action": "publish"}).content.decode()
    assert f'href="{draft.get_absolute_url()}"' in text
    for action in ("publish", "retire"):
        client.post("/curate/bulk/", BULK | {"action": action, "confirm": "1"})
        assert Task.objects.get().state == Task.State.REVIEW


def test_a_draft_that_names_a_task_of_others_stands_in_no_log_of_it(
    client: Client, judge: User
) -> None:
    task, thief = make.make_task_version().task, make.make_user(username="thief")
    retire(task=task, user=judge, reason="old", now=make.NOW)
    draft = created(thief, task.slug)
    close_draft(draft=draft, user=thief, reason="name taken", now=make.NOW)
    for address in ("/tasks/scale/curate/", "/curate/history/?task=scale"):
        text = page(client, address)
        assert ">Retired<" in text, address
        assert "thief" not in text.partition("Entry</th>")[2], address
    csv = page(client, "/curate/history/?task=scale&format=csv")
    assert ("retired" in csv, "thief" in csv) == (True, False)
    assert "name taken" in page(client, "/curate/history/")
    assert "name taken" in page(client, draft.get_absolute_url())


def test_kinds_of_devices_without_hidden_workloads_are_said_to_who_decides(
    client: Client, judge: User
) -> None:
    words = "There are no hidden workloads on cpu and cuda"
    assert make.make_task_version().without_hidden == ()
    public = example()["task.toml"].replace("hidden = true\n", "")
    draft = in_review(**{"task.toml": public})
    assert words in shown(client, draft)
    assert words not in shown(signed_in(draft.author), draft)
    publish_draft(draft=draft, user=judge, override="seen", now=make.NOW)
    assert words in client.get("/tasks/wave/curate/").content.decode()
    first, hidden = make.make_task().workloads[0], make.make_task().workloads[2]
    rows = (first, dataclasses.replace(hidden, devices=(DeviceKind.CUDA,)))
    assert make.make_task_version(workloads=rows).without_hidden == ("cpu",)


@pytest.fixture
def desk(client: Client) -> Client:
    """The browser of an admin."""
    client.force_login(make.make_admin(username="judge"))
    return client


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
    seen = values(shown(desk, draft))
    assert set(seen) == {""}
    found(draft.version, 5)
    form = {"action": "override", "reason": "two people read it", "revision": draft.revision}
    form |= {"replaces": "0"}
    address = reverse("draft-act", args=[draft.pk])
    for posted in (form, form | {"reports": seen[0]}):
        refused = desk.post(address, posted)
        assert refused.status_code == 422
        assert "two people read it" in refused.content.decode()
    assert not Override.objects.exists()
    assert Task.objects.get().state == "review"
    [now, *_] = set(values(refused.content.decode()))
    found(draft.version, 9, survivors=2)  # another one in place of it
    stale = desk.post(address, form | {"reports": now})
    [newest] = set(values(stale.content.decode()))
    assert (stale.status_code, newest != now) == (422, True)
    done = desk.post(address, form | {"reports": newest})
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
    assert not Override.objects.exists()
    [now] = values(refused)
    assert desk.post("/tasks/scale/curate/", form | {"reports": now}).status_code == 302
    assert Override.objects.get().reason == "read"


def test_an_admin_is_reminded_that_a_strangers_report_is_of_the_strangers_code(
    desk: Client,
) -> None:
    draft, own_code = in_review(), "own code"
    assert own_code not in shown(desk, draft)
    found(draft.version, 5, survivors=0)
    assert own_code in shown(desk, draft)
    draft.author.is_staff = True
    draft.author.save()
    assert own_code not in shown(desk, draft)


def test_a_draft_that_a_newer_version_has_overtaken_says_what_it_would_undo() -> None:
    admin = make.make_admin()
    desk = signed_in(admin)
    first = publish_draft(draft=in_review(admin), user=admin, now=make.NOW, override="an example")
    one, other = (copy_version(version=first, user=admin, now=make.NOW) for _ in range(2))
    for count, draft in enumerate((one, other)):
        edited(draft, **{"hints.py": f"# {count}\n"})
        assert act(desk, draft, "send").status_code == 302
    assert f'name="replaces" value="{first.number}"' in shown(desk, other)
    assert act(desk, one, "override", "seen by hand").status_code == 302
    for draft in (one, other):
        draft.refresh_from_db()
    assert one.version is not None
    assert other.version is not None
    refused = act(desk, other, "override", "seen by hand", replaces=first.number)
    assert refused.status_code == 422
    changes = reverse("task-version", args=[first.task.slug, other.version.number])
    assert f'href="{changes}?against={one.version.number}"' in refused.content.decode()
    assert act(desk, other, "override", "seen by hand", replaces="").status_code == 422
    assert act(desk, other, "override", "seen by hand").status_code == 302
