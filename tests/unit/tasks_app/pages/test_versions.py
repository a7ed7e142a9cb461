"""Versions of a task: which are seen by whom, and what differs between them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gpu_runner.data.task import Tolerance, Workload
from runs_app.features.curation.decisions.services import make_public, restore, retire
from tasks_app import selectors
from tasks_app.models import Draft, Task, TaskVersion
from tasks_app.pages import version_page
from tasks_app.pages.text_diff import Budget, diff
from tasks_app.publishing.services import admit, store_version
from tests import factories as make

SECRET = "sekrit_tail_777"
PUBLIC = (
    Workload(name="n256", parameters={"N": 256}),
    Workload(name="n4096", parameters={"N": 4096}),
)
site = pytest.mark.django_db


def publish(**overrides: Any) -> TaskVersion:
    return make.make_task_version(**overrides)


def store(**overrides: Any) -> TaskVersion:
    """A version that nobody made public."""
    return store_version(make.make_task(**overrides), make.NOW)[1]


def text_of(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status, address
    return b"".join(answer).decode()


def of_admin(client: Client) -> Client:
    client.force_login(make.make_admin())
    return client


@site
def test_a_version_shows_its_facts_and_files_against_the_one_before(client: Client) -> None:
    files = {"reference.py": "a = 1\nb = 2\n", "old.h": "gone\n"}
    publish(workloads=PUBLIC, files=files, kernels=())
    publish(
        workloads=(replace(PUBLIC[0], parameters={"N": 300}), PUBLIC[1]),
        files={"reference.py": "a = 1\nb = <3>\n", "new.h": "fresh\n"},
        tolerance=Tolerance(constant=32.0, reduction="N"),
        libraries=True,
        kernels=(),
    )  # fmt: skip
    text = text_of(client, "/tasks/scale/versions/2/")
    for part in (
        "16 + 4 √(1)", "32 + 4 √(N)", "not allowed", "N=300", "Vendor libraries",
        '<span class="line remove"><span class="sign">−</span>b = 2\n',
        '<span class="line add"><span class="sign">+</span>b = &lt;3&gt;\n',
        '<span class="line add"><span class="sign">+</span>fresh\n',
        ">new</span>", ">gone</span>", "version 1", "version 2",
    ):  # fmt: skip
        assert part in text, part
    detail = client.get("/api/v1/tasks/scale/versions/2").json()
    assert detail["against"] == 1
    changes = {change["path"]: change for change in detail["files"]}
    assert changes["reference.py"]["diff"] == "@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = <3>\n"
    assert (changes["old.h"]["state"], changes["new.h"]["state"]) == ("gone", "new")
    assert detail["workloads"] == [{"name": "n256", "before": "N=256", "after": "N=300"}]
    assert "All files" in text_of(client, "/tasks/scale/versions/1/")
    assert "No differences" in text_of(client, "/tasks/scale/versions/2/?against=2")
    assert "All files" in text_of(client, "/tasks/scale/versions/2/?against=0")
    assert text_of(client, "/tasks/scale/versions/1/files/old.h") == "gone\n"
    assert client.get("/tasks/scale/versions/2/files/old.h").status_code == 404


@site
def test_a_version_to_compare_with_that_is_none_is_named(client: Client) -> None:
    publish(workloads=PUBLIC)
    for asked in ("9", "-1", "x", "9" * 30, "²", "1.5"):
        assert "Against: " in text_of(client, f"/tasks/scale/versions/1/?against={asked}", 422)
        answer = client.get(f"/api/v1/tasks/scale/versions/1?against={asked}")
        assert answer.status_code in (404, 422)
    assert client.get(f"/tasks/scale/versions/{'9' * 30}/").status_code == 404


@site
@pytest.mark.parametrize("first_hides", [True, False])
def test_nothing_of_hidden_workloads_is_shown_to_others(client: Client, first_hides: bool) -> None:
    """In the list of workloads, in a file that is no code, in a changed parameter; both ways."""

    def with_secret(size: int) -> dict[str, Any]:
        hidden = Workload(name=SECRET, parameters={"N": size}, hidden=True)
        files = {"reference.py": "pass\n", "notes.json": f'{{"{SECRET}": {size}}}'}
        return {"workloads": (*PUBLIC, hidden), "files": files, "kernels": ()}

    publish(**with_secret(98761))
    publish(**with_secret(98762))
    third = {"workloads": PUBLIC, "files": {"reference.py": "pass\n", "notes.json": "{}"}}
    publish(**third, kernels=())
    pairs = [(2, 1), (3, 2), (1, 3), (2, 0)] if first_hides else [(1, 2), (2, 3), (3, 1), (1, 0)]
    for number, against in pairs:
        query = f"versions/{number}?against={against}"
        pages = [
            text_of(client, "/tasks/scale/" + query.replace("?", "/?")),
            text_of(client, f"/api/v1/tasks/scale/{query}"),
            text_of(client, "/tasks/scale/versions/"),
            text_of(client, "/api/v1/tasks/scale/versions"),
        ]
        for text in pages:
            assert SECRET not in text
            assert "9876" not in text
        changed = json.loads(pages[1])["files"]
        assert "notes.json" not in pages[0] + pages[2] + pages[3] + json.dumps(changed)
        if against:
            assert "Hidden workloads differ." in pages[0]
            assert "Files that could list hidden workloads differ." in pages[0]
    assert "hidden workloads differ" in pages[2]
    for number in (1, 2):
        assert client.get(f"/tasks/scale/versions/{number}/files/notes.json").status_code == 404
        assert SECRET not in text_of(client, f"/tasks/scale/versions/{number}/files/task.toml")
    assert text_of(client, "/tasks/scale/versions/3/files/notes.json") == "{}"
    text = text_of(of_admin(client), "/tasks/scale/versions/2/?against=1")
    assert "N=98761; hidden" in text
    assert "notes.json" in text
    assert SECRET in text_of(client, "/tasks/scale/versions/2/files/notes.json")


@site
def test_a_task_of_hidden_workloads_alone_breaks_no_page(client: Client) -> None:
    publish(workloads=(Workload(name=SECRET, parameters={"N": 1}, hidden=True),))
    publish(workloads=(Workload(name=SECRET, parameters={"N": 2}, hidden=True),))
    assert SECRET not in text_of(client, "/tasks/scale/versions/")
    assert "be shown to you" in text_of(client, "/tasks/scale/versions/2/")
    assert client.get("/api/v1/tasks/scale/versions/2").status_code == 404
    assert client.get("/tasks/scale/versions/2/files/task.toml").status_code == 404
    hidden = Workload(name=SECRET, parameters={"N": 1}, hidden=True)
    one, two = publish(workloads=(*PUBLIC, hidden)), publish(workloads=(hidden, *PUBLIC))
    found = version_page.compare(one, two, None, Budget())  # a change that one may not see
    assert (found.files, found.is_same) == ((), False)
    assert found.summary == "nothing that you can see"


@site
def test_versions_that_were_never_public_are_for_admins(client: Client) -> None:
    publish()
    version = store(title="Not yet")
    assert version.number == 2
    author = make.make_user()
    draft = Draft.objects.create(
        name="scale", files={}, version=version, author=author, created_at=make.NOW,
        changed_at=make.NOW,
    )  # fmt: skip
    draft.versions.add(version)
    for user in (None, author):
        if user is not None:
            client.force_login(user)
        text = text_of(client, "/tasks/scale/versions/")
        assert "Version 2" not in text
        assert str(draft.pk) not in text
        assert "/versions/2/" not in text_of(client, "/tasks/scale/")
        for address in ("tasks/scale/versions/2/", "api/v1/tasks/scale/versions/2"):
            assert client.get(f"/{address}").status_code == 404
        assert client.get("/tasks/scale/versions/2/files/task.toml").status_code == 404
        assert client.get("/tasks/scale/versions/1/?against=2").status_code == 422
        assert client.get("/api/v1/tasks/scale/versions/1?against=2").status_code == 404
    of_admin(client)
    text = text_of(client, "/tasks/scale/versions/")
    assert "never public" in text
    assert "no soundness report" in text
    assert f"/drafts/{draft.pk}/" in text
    assert "Not yet" in text_of(client, "/tasks/scale/versions/2/")
    assert text_of(client, "/tasks/scale/versions/1/?against=2")
    for state in (Task.State.DRAFT, Task.State.REVIEW):  # nothing of it is public
        Task.objects.update(state=state)
        for address in ("versions/", "versions/1/", "versions/1/files/task.toml"):
            assert Client().get(f"/tasks/scale/{address}").status_code == 404
            assert client.get(f"/tasks/scale/{address}").status_code == 200
        assert Client().get("/tasks/scale/").status_code == 404


@site
def test_a_retired_task_stays_readable_and_takes_nothing(client: Client) -> None:
    evaluation = make.make_finished_evaluation(mode="ranked")
    task = Task.objects.get()
    retire(task=task, user=make.make_admin(), reason="Its reference was wrong.", now=make.NOW)
    unseen = store(title="A version nobody was to see")
    Task.objects.update(current_version=unseen, title=unseen.document["title"])
    page = text_of(client, "/tasks/scale/")
    assert "Its reference was wrong." in page
    assert "nobody was to see" not in page
    assert "/submit/?task" not in page
    assert f"/submissions/{evaluation.submission_id}/" in page
    versions = text_of(client, "/tasks/scale/versions/")
    assert "nobody was to see" not in versions + text_of(client, "/tasks/scale/versions/1/")
    submission = text_of(client, f"/submissions/{evaluation.submission_id}/")
    assert 'href="/tasks/scale/"' in submission
    assert client.get("/api/v1/tasks/scale").json()["state"] == "retired"
    assert client.get("/tasks/scale/soundness/").status_code == 200
    assert client.get("/api/v1/tasks").json() == []
    assert selectors.find_task("scale", make.make_admin()) is None
    client.force_login(User.objects.first() or make.make_user())
    answer = client.post("/submit/", {"task": "scale", "source": make.SOURCE, "device": "cpu"})
    assert answer.status_code == 422


@site
def test_what_was_public_keeps_its_title_until_another_version_is(client: Client) -> None:
    evaluation = make.make_finished_evaluation(mode="ranked")
    Task.objects.update(state=Task.State.RETIRED)
    unseen = admit(data=make.make_task(title="Unseen"), now=make.NOW).version
    assert Task.objects.get().current_version == unseen
    pages = ("/tasks/scale/", "/tasks/scale/soundness/", "/tasks/scale/versions/")
    submission = evaluation.submission.get_absolute_url()
    for page in (*pages, submission, "/api/v1/tasks/scale"):
        assert "Unseen" not in text_of(client, page)
    task, admin = Task.objects.get(), make.make_admin()
    task = restore(task=task, user=admin, now=make.NOW)
    assert (task.state, task.title) == ("review", "Scale a vector")
    given = {"version": unseen, "reason": "better", "override": "seen", "now": make.NOW}
    make_public(task=task, user=admin, **given)
    assert Task.objects.get().title == "Unseen"


def test_ends_and_breaks_of_lines_are_told_apart() -> None:
    for before, after, unified in (
        ("", "", ""),
        ("", "a\n", "@@ -0,0 +1,1 @@\n+a\n"),
        ("a\n", "", "@@ -1,1 +0,0 @@\n-a\n"),
        ("a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        ("a\r\n", "a\n", "@@ -1,1 +1,1 @@\n-a\r\n+a\n"),
        ("a\n\x0cb\n", "a\n\x0cc\n", "@@ -1,2 +1,2 @@\n a\n-\x0cb\n+\x0cc\n"),
    ):
        assert diff(before, after, Budget()).unified == unified


def test_large_texts_are_summarised_in_time() -> None:
    many = "".join(f"{index % 100}\n" for index in range(200_000))
    other = "".join(f"{(index * 7) % 99}\n" for index in range(200_000))
    hard = "".join(f"{index % 95}\n" for index in range(1900))
    harder = "".join(f"{(index * 7) % 96}\n" for index in range(1900))
    start = time.process_time()
    budget = Budget()
    assert diff(many, other, budget).lines is None
    for number in range(60):
        diff(f"{number}{hard}", f"{number}{harder}", budget)
    assert diff("x" * 2**20, "y" * 2**20, Budget()).lines is None
    small = diff(many, "new\n" + many, Budget())
    assert (small.added, small.removed) == (1, 0)
    assert time.process_time() - start < 20, "it is bounded, whatever the machine"
