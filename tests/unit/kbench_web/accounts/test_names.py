"""Under which names people and agents are shown, and what stays of a deleted account."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from kbench_web.accounts.names import delete_account
from kbench_web.models import ApiToken
from runs_app.core.errors import NotAllowed, SubmissionError
from runs_app.models import Agent, Evaluation, Run, Submission
from runs_app.submitting.services import cancel
from tasks_app.models import Draft, TaskVersion
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def result_of(user: User) -> Evaluation:
    return make.make_finished_evaluation(mode="ranked", user=user)


class TestShownName:
    def test_it_stands_everywhere_in_place_of_the_user_name(self, client: Client) -> None:
        ada = make.make_user(username="ada-lovelace")
        evaluation = result_of(ada)
        client.force_login(ada)
        assert client.post("/account/name/", {"name": "Countess"}).status_code == 302
        pages = ("/", "/leaderboard/", "/tasks/scale/", f"/submissions/{evaluation.submission_id}/")
        api = f"/api/v1/submissions/{evaluation.submission_id}"
        data = ("/api/v1/leaderboard", api, "/leaderboard/?format=csv")
        for path in (*pages, *data):
            text = Client().get(path).content.decode()
            assert "ada-lovelace" not in text, path
        for path in pages:
            assert "Countess" in Client().get(path).content.decode(), path
        profile = evaluation.submission.agent.get_absolute_url()
        assert f'href="{profile}">' in client.get("/account/").content.decode()
        make.make_user(username="grace")
        make.make_submission(agent="robot", task_version=evaluation.task_version)
        for name in ("grace", "Robot", "kbench-good", "deleted-1", "<b>", 101 * "x"):
            assert client.post("/account/name/", {"name": name}).status_code == 422
            ada.refresh_from_db()
            assert ada.first_name == "Countess"
        client.post("/account/name/", {"name": " "})
        assert Agent.objects.get(user=ada).name == "ada-lovelace"


class TestAgentsNames:
    def test_a_name_belongs_to_who_used_it_first(self) -> None:
        ada, eve = make.make_user(), make.make_user()
        make.make_submission(user=ada, agent="robot")
        make.make_submission(user=ada, agent="robot", task_version=TaskVersion.objects.get())
        with pytest.raises(SubmissionError, match="belongs to another user") as refusal:
            make.make_submission(user=eve, agent="robot", task_version=TaskVersion.objects.get())
        assert refusal.value.field == "agent"
        assert Submission.objects.filter(author=eve).count() == 0
        assert Agent.objects.get(name="robot").owner == ada
        for user in (ada, eve):  # a strategy's is everybody's
            version = TaskVersion.objects.get()
            make.make_submission(agent="kbench-evolve", user=user, task_version=version)
        assert Agent.objects.get(name="kbench-evolve").owner is None

    def test_an_unused_name_is_taken_but_not_one_with_results(self) -> None:
        version = make.make_task_version()
        Agent.objects.create(name="free", created_at=make.NOW)
        ada = make.make_user()
        make.make_submission(user=ada, agent="free", task_version=version)
        assert Agent.objects.get(name="free").owner == ada
        Agent.objects.filter(name="free").update(owner=None)
        with pytest.raises(SubmissionError, match="belongs to another user"):
            make.make_submission(user=ada, agent="free", task_version=version)


class TestDeletion:
    def test_public_results_stay_without_the_name(self, client: Client) -> None:
        ada = make.make_user(username="ada-lovelace", email="ada@kbench.example")
        public = result_of(ada)
        version = public.task_version
        waiting = make.make_evaluation(user=ada, task_version=version)
        cancel(evaluation=waiting, user=ada, now=make.NOW)
        private = make.make_submission(user=ada, task_version=version, private=True)
        make.make_token(ada)
        client.force_login(ada)
        assert f"deleted-{ada.pk}" in client.get("/account/delete/").content.decode()
        assert client.post("/account/delete/", {"proof": "wrong"}).status_code == 422
        assert User.objects.filter(username="ada-lovelace").exists()
        assert client.post("/account/delete/", {"proof": "secret"})["Location"] == "/"
        assert client.get("/account/").status_code == 302
        ada.refresh_from_db()
        assert (ada.username, ada.email, ada.is_active) == (f"deleted-{ada.pk}", "", False)
        assert not ada.has_usable_password()
        assert not ApiToken.objects.filter(user=ada).exists()
        assert not Submission.objects.filter(pk=private.pk).exists()
        page = f"/submissions/{public.submission_id}/"
        for path in ("/", "/leaderboard/", "/tasks/scale/", page):
            text = Client().get(path).content.decode()
            assert f"deleted-{ada.pk}" in text, path
            assert "ada-lovelace" not in text, path
        assert not waiting.events.filter(payload__icontains="ada-lovelace").exists()

    def test_what_runs_is_stopped(self) -> None:
        ada = make.make_user()
        public = make.make_run(user=ada)
        private = make.make_run(user=ada, private=True)
        draft = Draft.objects.create(
            name="mine", files={}, author=ada, created_at=make.NOW, changed_at=make.NOW
        )
        delete_account(user=ada, now=timezone.now())
        public.refresh_from_db()
        assert public.status == Run.Status.STOPPED
        assert not Run.objects.filter(pk=private.pk).exists()
        draft.refresh_from_db()
        assert draft.state == Draft.State.CLOSED

    def test_the_last_admin_stays_and_who_has_no_password_types_the_name(
        self, client: Client
    ) -> None:
        ada = make.make_user(username="ada")
        ada.set_unusable_password()
        ada.save()
        client.force_login(ada)
        assert client.post("/account/delete/", {"proof": "eve"}).status_code == 422
        assert client.post("/account/delete/", {"proof": "ada"}).status_code == 302
        admin = make.make_admin()
        with pytest.raises(NotAllowed, match="last admin"):
            delete_account(user=admin, now=timezone.now())
        make.make_admin()
        delete_account(user=admin, now=timezone.now())
