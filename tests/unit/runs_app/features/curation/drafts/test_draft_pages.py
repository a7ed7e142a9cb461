"""The pages on which tasks are proposed, written and decided about."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from runs_app.features.curation.drafts.services import send_to_review
from tasks_app.models import Draft, Override, Task
from tasks_app.publishing.snapshots import snapshot
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import (
    act,
    created,
    example,
    in_review,
    shown,
    signed_in,
)

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def as_zip(files: dict[str, str], folder: str = "wave/") -> SimpleUploadedFile:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            archive.writestr(folder + path, text)
    return SimpleUploadedFile("wave.zip", packed.getvalue(), "application/zip")


@pytest.fixture
def author(client: Client) -> User:
    user = make.make_user()
    client.force_login(user)
    return user


@pytest.fixture
def admin_client() -> Client:
    return signed_in(make.make_admin())


def save(client: Client, draft: Draft, **values: Any) -> Any:
    draft.refresh_from_db()
    posted = {"path": "task.toml", "text": draft.files["task.toml"], "revision": draft.revision}
    headers = values.pop("headers", {})
    return client.post(draft.get_absolute_url(), posted | values, headers=headers)


def test_an_upload_becomes_a_draft_and_can_be_downloaded(client: Client, author: User) -> None:
    clutter = {"Thumbs.db": "\0", **{f"plot{number}.png": "" for number in range(6)}}
    answer = client.post("/drafts/", {"upload": [as_zip(example() | clutter)]})
    draft = Draft.objects.get(author=author)
    assert (answer.status_code, answer["Location"]) == (302, draft.get_absolute_url())
    text = shown(client, draft)
    assert "void scaled_sum" in text
    assert "wave/Thumbs.db, wave/plot0.png" in text, "what was not read is said"
    packed = client.get(reverse("draft-download", args=[draft.pk]))
    with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
        assert archive.read("wave/reference.py").decode() == draft.files["reference.py"]
    assert "wave" in client.get("/drafts/").content.decode()


def test_a_bad_upload_is_refused_beside_its_field(client: Client, author: User) -> None:
    for content in (b"", b"PK\x03\x04 no zip", b"\xff\xfe\x00"):
        answer = client.post("/drafts/", {"upload": [SimpleUploadedFile("a.zip", content)]})
        assert (answer.status_code, "errorlist" in answer.content.decode()) == (422, True)
    assert client.post("/drafts/", {}).status_code == 422
    large = SimpleUploadedFile("a.py", b"#" * (8 * 1024 * 1024 + 1))
    answer = client.post("/drafts/", {"upload": [large]})
    assert (answer.status_code, "8 MiB" in answer.content.decode()) == (422, True)
    assert not Draft.objects.exists()


def test_saving_keeps_what_is_wrong_and_names_file_and_line(client: Client, author: User) -> None:
    draft = created(author)
    wrong = 'name = "wave"\r\ntitle = \r\n'
    answer = save(client, draft, text=wrong, headers=HTMX)
    text = answer.content.decode()
    assert answer.status_code == 200
    assert "task.toml, line 2" in text
    assert '<script id="fault-lines" type="application/json">[2]</script>' in text
    draft.refresh_from_db()
    assert (draft.files["task.toml"], draft.revision) == ('name = "wave"\ntitle = \n', 2)
    assert f'value="{draft.revision}"' in text


def test_a_stale_text_is_refused_with_both_kept(client: Client, author: User) -> None:
    draft = created(author)
    save(client, draft, path="reference.py", text="# theirs\n")
    mine = {"path": "reference.py", "text": "# <mine>\n", "revision": 1}
    for headers in (HTMX, {}):
        answer = client.post(draft.get_absolute_url(), mine, headers=headers)
        text = answer.content.decode()
        assert answer.status_code == 409
        assert "# theirs" in text
        assert "# &lt;mine&gt;" in text
        assert "<mine>" not in text
    draft.refresh_from_db()
    assert draft.files["reference.py"] == "# theirs\n"
    assert client.post(draft.get_absolute_url(), mine | {"over": 2}).status_code == 302
    draft.refresh_from_db()
    assert draft.files["reference.py"] == "# <mine>\n"


def test_files_are_added_renamed_uploaded_and_deleted(client: Client, author: User) -> None:
    draft = created(author)
    answer = save(client, draft, do="add", new_path="kernels/tuned.cu")
    assert answer["Location"].endswith("?file=kernels%2Ftuned.cu")
    renamed = {"path": "kernels/tuned.cu", "text": "// new", "rename_to": "kernels/best.cu"}
    save(client, draft, do="rename", **renamed)
    upload = SimpleUploadedFile("notes.md", "ä\r\n".encode())
    save(client, draft, do="upload", upload=upload)
    save(client, draft, do="delete", path="kernels/naive.cpp", text="")
    draft.refresh_from_db()
    assert draft.files["kernels/best.cu"] == "// new"
    assert draft.files["notes.md"] == "ä\n"
    assert "kernels/naive.cpp" not in draft.files
    assert "kernels/tuned.cu" not in draft.files


def test_after_taking_over_the_author_sees_neither_files_nor_workloads(
    client: Client, author: User, admin_client: Client
) -> None:
    draft = created(author)
    assert act(admin_client, draft, "take").status_code == 302
    save(admin_client, draft, do="add", new_path="secret_sizes.json")
    snapshot(draft=draft, now=make.NOW)
    for query in ("", "?file=task.toml", "?file=secret_sizes.json"):
        text = shown(client, draft, query)
        assert "Taken over" in text
        for hidden in ("secret_sizes", "n4099", "scaled_sum", "hidden workload", "forward_fn"):
            assert hidden not in text
    assert save(client, draft).status_code == 403
    assert client.get(reverse("draft-download", args=[draft.pk])).status_code == 403
    assert act(client, draft, "send").status_code == 422
    assert "n4099" in shown(admin_client, draft)


def test_only_admins_decide(client: Client, author: User, admin_client: Client) -> None:
    draft = created(author)
    assert act(client, draft, "send").status_code == 302
    for action in ("publish", "override", "back", "take"):
        assert act(client, draft, action, "x").status_code == 403
    assert act(admin_client, draft, "back").status_code == 422  # nobody says why
    again = admin_client.get(reverse("draft-act", args=[draft.pk]))  # the page's address, entered
    assert again.headers["Location"] == draft.get_absolute_url()
    assert act(admin_client, draft, "back", "use <b>other</b> sizes").status_code == 302
    for text in (shown(client, draft), client.get("/drafts/").content.decode()):
        assert "use &lt;b&gt;other&lt;/b&gt; sizes" in text
    act(client, draft, "send")
    assert "<strong>Sent back.</strong>" not in shown(client, draft)
    act(client, draft, "reopen")
    assert act(client, draft, "close").status_code == 422
    act(client, draft, "close", "of no use")
    assert "of no use" in shown(client, draft)


def test_publishing_without_a_proof_needs_a_reason(
    client: Client, author: User, admin_client: Client
) -> None:
    draft = in_review(author)
    refused = act(admin_client, draft, "publish")
    assert (refused.status_code, "no soundness report" in refused.content.decode()) == (422, True)
    assert act(admin_client, draft, "override").status_code == 422
    assert Task.objects.get().state == "review"
    assert act(admin_client, draft, "override", " seen by hand ").status_code == 302
    assert Task.objects.get().state == "published"
    assert Override.objects.get().reason == "seen by hand"
    assert [entry.kind for entry in draft.audit_entries.all()][:2] == ["published", "overridden"]
    text = shown(client, draft)
    assert 'href="/tasks/wave/"' in text
    assert "void scaled_sum" in text  # its files stay readable
    assert "readonly" in text


def test_an_admin_publishes_what_the_page_showed_and_nothing_newer(
    client: Client, author: User, admin_client: Client
) -> None:
    draft = in_review(author)
    page = shown(admin_client, draft)
    assert page.count('name="revision" value="1"') == 4  # publish, override, back, close
    act(admin_client, draft, "back", "say more")
    assert save(client, draft, text=draft.files["task.toml"] + "# more\n").status_code == 302
    for action, who in (("send", client), ("override", admin_client)):
        for revision in (1, "none"):
            refused = act(who, draft, action, "seen by hand", revision=revision)
            assert refused.status_code == 422
            assert "have changed since" in refused.content.decode()
        assert act(who, draft, action, "seen by hand").status_code == 302


def test_admins_see_what_waits_and_others_do_not(
    client: Client, author: User, admin_client: Client
) -> None:
    draft = created(make.make_user())
    assert "Drafts by others" in admin_client.get("/drafts/").content.decode()
    send_to_review(draft=draft, user=draft.author, now=make.NOW)
    text = admin_client.get("/drafts/").content.decode()
    assert "1 in review" in text
    assert draft.get_absolute_url() in text
    text = client.get("/drafts/").content.decode()
    assert draft.get_absolute_url() not in text
    assert "Waiting for a decision" not in text


def test_what_an_admin_uploads_under_a_tasks_name_is_its_next_version(
    client: Client, author: User, admin_client: Client
) -> None:
    make.make_task_version(name="wave")
    admin_client.post("/drafts/", {"upload": [as_zip(example())]})
    assert Draft.objects.get().task == Task.objects.get()
    client.post("/drafts/", {"upload": [as_zip(example())]})
    draft = Draft.objects.get(author=author)
    assert draft.task is None
    assert "choose another name" in shown(client, draft)
    address = reverse("draft-copy", args=["wave", 1])
    assert client.post(address).status_code == 403
    assert admin_client.post(address).status_code == 302
    assert Draft.objects.filter(task=Task.objects.get()).count() == 2


def test_hostile_names_are_only_text(client: Client, author: User) -> None:
    toml = 'name = "<b>"\ntitle = "<script>x</script>"\n'
    draft = created(author, **{"task.toml": toml, "<img src=x>.py": "</textarea><script>y"})
    for query in ("", "?file=<img src=x>.py&line=9", "?file=%00&line=x"):
        text = shown(client, draft, query)
        for mark in ("<script>x", "<img src=x", "<script>y", "<b>"):
            assert mark not in text
