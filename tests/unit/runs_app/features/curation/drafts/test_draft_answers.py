"""What the workbench answers: which file is at fault, what was not saved, what was not seen."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.refusals import free_name
from runs_app.features.curation.drafts.services import close_draft, create_draft, edit_draft
from tasks_app.models import Draft, Task
from tasks_app.publishing.snapshots import snapshot
from tests import factories as make

pytestmark = pytest.mark.django_db

UNSAVED = "Not saved. Your text is still in the editor."
BROKEN = "def make_inputs(N:\n"


@pytest.fixture
def author(client: Client) -> User:
    user = make.make_user()
    client.force_login(user)
    return user


def created(user: User, **files: str) -> Draft:
    held = draft_page.example_files() | files
    return create_draft(user=user, files=held, now=make.NOW)


def send(client: Client, draft: Draft, **values: object) -> str:
    posted = {"action": "send", "revision": draft.revision} | values
    answer = client.post(reverse("draft-act", args=[draft.pk]), posted, follow=True)
    return answer.content.decode()


def edit(client: Client, draft: Draft, **values: Any) -> str:
    text = draft.files["task.toml"]
    posted = {"path": "task.toml", "text": text, "revision": draft.revision} | values
    answer = client.post(draft.get_absolute_url(), posted)
    assert answer.status_code in (409, 422)
    return answer.content.decode()


def start(client: Client) -> Draft:
    client.post(reverse("draft-example"))
    return Draft.objects.order_by("-changed_at").first() or pytest.fail("no draft was made")


class TestSending:
    def test_what_is_sent_is_what_was_seen(self, client: Client, author: User) -> None:
        draft = created(author)
        page = client.get(draft.get_absolute_url()).content.decode()
        form = page.partition('id="draft-actions"')[2].partition("</form>")[0]
        assert 'name="revision" value="1"' in form
        newer = {**draft.files, "notes.txt": "x"}
        edit_draft(draft=draft, user=author, files=newer, revision=1, now=make.later(1))
        for revision in (1, ""):
            assert "Its files have changed since you opened it: look again." in send(
                client, draft, revision=revision
            )
        assert Draft.objects.get().state == Draft.State.OPEN
        assert "Sent to review" in send(client, draft, revision=2)

    def test_a_refusal_names_the_file(self, client: Client, author: User) -> None:
        text = send(client, created(author, **{"reference.py": BROKEN}))
        assert "reference.py: is not valid Python (line 1): " in text

    def test_a_refusal_names_the_field(self, client: Client, author: User) -> None:
        toml = draft_page.example_files()["task.toml"].replace('abi = "c"', 'abi = "z"')
        assert "</strong> abi: &#x27;z&#x27; is not one of" in send(
            client, created(author, **{"task.toml": toml})
        )

    def test_the_list_of_faults_says_a_line_once(self, client: Client, author: User) -> None:
        draft = created(author, **{"reference.py": BROKEN})
        page = client.get(draft.get_absolute_url()).content.decode()
        assert "reference.py, line 1</button>" in page
        assert "is not valid Python: " in page
        assert "(line 1)" not in page


class TestWhatIsNotSaved:
    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"do": "upload"}, "Choose a file."),
            ({"do": "add"}, "Give the file"),
            ({"do": "add", "new_path": "reference.py"}, "Reference.py already exists."),
            ({"do": "rename", "rename_to": "reference.py"}, "eference.py already exists"),
        ],
    )
    def test_nothing_is_said_of_a_text_that_is_as_it_is_stored(
        self, client: Client, author: User, values: dict[str, str], words: str
    ) -> None:
        draft = created(author)
        text = edit(client, draft, **values)
        assert words in text
        assert UNSAVED not in text
        assert "data-unsaved" not in text
        text = edit(client, draft, text="# written", **values)
        assert words in text
        assert UNSAVED in text

    def test_a_save_that_is_refused_says_so(self, client: Client, author: User) -> None:
        draft = created(author)
        assert UNSAVED in edit(client, draft, text="\0")
        assert UNSAVED in edit(client, draft, revision=9)
        assert UNSAVED in edit(client, draft, do="add", new_path="notes.txt", revision=9)


def test_deleting_a_file_is_asked_before_and_names_it(client: Client, author: User) -> None:
    page = client.get(created(author).get_absolute_url()).content.decode()
    before, _, after = page.partition('value="delete"')
    assert after.startswith(">Delete task.toml for good</button>")
    asked = before.rpartition('<details class="confirm">')[2]
    assert asked.startswith('<summary class="button small danger break">Delete task.toml</summary>')
    assert "</details>" not in asked


class TestTheExamplesName:
    def test_it_has_no_fault_whatever_there_is(self, client: Client, author: User) -> None:
        make.make_task_version(name="scaled_sum")
        names = []
        for _ in range(2):
            draft = start(client)
            assert draft_page.read_draft(draft)[1] == ()
            names.append(draft.name)
        assert names == ["scaled_sum_2", "scaled_sum_3"]
        assert "void scaled_sum(" in draft.files["task.toml"]

    def test_an_admins_is_no_next_version(self, client: Client) -> None:
        make.make_task_version(name="scaled_sum")
        client.force_login(make.make_admin())
        assert (start(client).name, Draft.objects.get().task) == ("scaled_sum_2", None)

    def test_a_name_that_another_writes_under_is_left_to_them(
        self, client: Client, author: User
    ) -> None:
        other = created(make.make_user())
        snapshot(draft=other, now=make.NOW)
        assert free_name("scaled_sum", author) == "scaled_sum_2"
        assert free_name("scaled_sum", make.make_user()) == "scaled_sum_2"
        close_draft(draft=other, user=other.author, reason="mistaken", now=make.NOW)
        assert start(client).name == "scaled_sum"

    def test_a_fault_says_whether_the_task_is_public(self) -> None:
        snapshot(draft=created(make.make_user()), now=make.NOW)
        mine = created(make.make_user())
        [fault] = draft_page.read_draft(mine)[1]
        assert "'scaled_sum' is the name of a task that is not public" in fault.reason
        make.make_task_version(name="scaled_sum")
        [fault] = draft_page.read_draft(mine)[1]
        assert fault.reason.startswith("a task 'scaled_sum' already exists")
        Task.objects.update(state=Task.State.RETIRED)
        assert draft_page.read_draft(mine)[1] == (fault,)
