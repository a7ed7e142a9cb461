"""A site with at least one row behind every address, and all addresses of the URL resolver.

Everything that `alice` has is private, and carries a word by which a test recognizes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from gpu_runner.data.task import Workload
from kbench_web.accounts.invitations import invite
from runs_app.consumers import websocket_urlpatterns
from runs_app.features.challenges.models import Entry
from runs_app.features.challenges.services import enter
from runs_app.features.notices.models import Notice, Watch, Webhook
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.models import (
    Announcement,
    Device,
    LanguageModel,
    LanguageModelCall,
    QuarantineCase,
    TaskCheck,
    Tuning,
)
from tasks_app.models import TaskVersion
from tests import factories as make
from tests.unit.runs_app.features.challenges.invented import new_challenge
from tests.unit.runs_app.features.curation.drafted import draft_of, version_of

SECRETS = (
    "alices_source", "alices_hidden_size", "alices-agent", "alices-model", "alices-run",
    "alices_draft", "alices-token", "alices-hook", "alices notice", "alices transcript",
)  # fmt: skip
"""Words that stand in what is alice's alone."""
SOURCE = f"// alices_source\n{make.SOURCE}"


@dataclass(frozen=True)
class Route:
    """An address with parameters, as the resolver has it: `runs/<uuid:run_id>/`."""

    pattern: str
    name: str
    callback: Any = field(compare=False)

    @property
    def path(self) -> str:
        """`/runs/<run_id>/`: without converters and the signs of regular expressions."""
        plain = re.sub(
            r"\(\?P<(\w+)>(?:\[[^]]*\]|[^)])*\)|<(?:\w+:)?(\w+)>", r"<\1\2>", self.pattern
        )
        return "/" + plain.replace("^", "").replace("$", "")

    @property
    def parameters(self) -> list[str]:
        """Names of its parameters."""
        return re.findall(r"<(\w+)>", self.path)


def routes() -> list[Route]:
    """All that the site answers, without the parts of Django's admin pages that need a row."""
    found = list(_routes(get_resolver()))
    return [each for each in found if not (each.path.startswith("/admin/") and each.parameters)]


def _routes(resolver: URLResolver, start: str = "") -> Iterator[Route]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from _routes(entry, start + str(entry.pattern))
        elif isinstance(entry, URLPattern):
            yield Route(start + str(entry.pattern), entry.name or "", entry.callback)


def sockets() -> list[Route]:
    """Addresses of WebSockets."""
    return [Route(str(entry.pattern), "", entry.callback) for entry in websocket_urlpatterns]


@dataclass(frozen=True, kw_only=True)
class World:
    """Who there is, and a value for each parameter of an address.

    `values` are alice's, `public` has others that everybody sees.
    """

    alice: User
    bob: User
    admin: User
    entry_token: str
    values: Mapping[str, Any]
    public: Mapping[str, Any]

    def address(self, route: Route) -> str:
        """The route with alice's values in place of its parameters."""
        return _filled(route, self.values)

    def addresses(self, route: Route) -> set[str]:
        """The same, and with what is public."""
        return {self.address(route), _filled(route, {**self.values, **self.public})}


def _filled(route: Route, values: Mapping[str, Any]) -> str:
    if "challenges" in route.path:
        values = {**values, "slug": values["challenge"]}
    if "reevaluate" in route.path:  # of one re-evaluation; elsewhere it is a version's
        values = {**values, "number": values["reevaluation_id"]}
    return re.sub(r"<(\w+)>", lambda found: str(values[found[1]]), route.path)


def make_world() -> World:
    """Fill the database; needs the fixture `jobs`."""
    alice, bob = make.make_user(username="alice"), make.make_user(username="bob")
    admin, now = make.make_admin(username="root"), datetime.now(UTC)
    version, device = make.make_task_version(), make.make_cpu()
    public = _kernels_of(bob, version, agent="robot", model="oracle")
    dates = {"starts_at": now, "ends_at": now + timedelta(days=1), "now": now}
    challenge = new_challenge(name="Autumn", tasks=("scale",), user=admin, **dates)
    entry, entry_token = enter(challenge=challenge, user=alice, agent="alices-rival", now=now)
    Entry.objects.filter(pk=entry.pk).update(transcript="alices transcript")
    values: dict[str, Any] = {
        "slug": version.task.slug, "number": version.number, "challenge": challenge.slug,
        "entry_id": entry.pk, "user_id": alice.pk, "device_slug": device.slug, "name": "results",
        "path": "reference.py", "provider_id": "oidc", "key": "none", "uidb36": "1",
        **_kernels_of(alice, version, agent="alices-agent", model="alices-model", private=True),
        **_draft_of(alice, device),
        **_account_of(alice, device, now),
        **_of_admins(version, admin, now),
    }  # fmt: skip
    return World(
        alice=alice, bob=bob, admin=admin, entry_token=entry_token, values=values, public=public
    )


def _kernels_of(
    user: User, version: TaskVersion, *, agent: str, model: str, private: bool = False
) -> dict[str, Any]:
    source = SOURCE if private else make.SOURCE
    evaluation = make.make_finished_evaluation(
        mode="ranked", user=user, task_version=version, source=source, private=private,
        agent=agent, language_model=model,
    )  # fmt: skip
    name = f"{user.username}s-run"
    run = make.make_run(user=user, task_version=version, private=private, name=name)
    make.make_candidate(run, source=source)
    called, _ = LanguageModel.objects.get_or_create(
        name="called", defaults={"created_at": make.NOW}
    )
    LanguageModelCall.objects.create(
        run=run, number=1, language_model=called, role="propose",
        messages=[{"role": "user", "content": source}], temperature=0.5, max_tokens=9,
        created_at=make.NOW,
    )  # fmt: skip
    return {
        "submission_id": evaluation.submission_id, "evaluation_id": evaluation.pk, "run_id": run.pk,
        "agent_id": evaluation.submission.agent_id,
        "language_model_id": evaluation.submission.language_model_id,
        "short_submission": str(evaluation.submission_id)[:8], "short_run": str(run.pk)[:8],
    }  # fmt: skip


def _draft_of(alice: User, device: Device) -> dict[str, Any]:
    workloads = (
        Workload(name="n256", parameters={"N": 256}),
        Workload(name="alices_hidden_size", parameters={"N": 1777}, hidden=True),
    )
    draft = draft_of(alice, name="alices_draft", title="alices_draft", workloads=workloads)
    check = TaskCheck.objects.create(
        version=version_of(draft), device=device, asked_by=alice, queued_at=make.NOW,
        created_at=make.NOW,
    )  # fmt: skip
    return {"draft_id": draft.pk, "check_id": check.pk}


def _account_of(alice: User, device: Device, now: datetime) -> dict[str, Any]:
    client = Client()
    client.force_login(alice)
    session = UserSession.objects.create(
        user=alice, session_key=client.session.session_key, ip="10.1.2.3", user_agent="alices-phone"
    )
    make.make_token(alice, name="alices-token")
    notice = Notice.objects.create(
        user=alice, kind="run", text="alices notice", url="/", created_at=now
    )
    watch = Watch.objects.create(user=alice, device=device, key="alices-watch", created_at=now)
    webhook = Webhook.objects.create(
        user=alice, url="https://alices-hook.example/", salt="0" * 64, created_at=now
    )
    return {
        "session_id": session.pk, "token_id": alice.api_tokens.get().pk, "notice_id": notice.pk,
        "watch_id": watch.pk, "webhook_id": webhook.pk,
    }  # fmt: skip


def _of_admins(version: TaskVersion, admin: User, now: datetime) -> dict[str, Any]:
    case = QuarantineCase.objects.create(
        digest="", task_version=version, fingerprint="", suspicions=[], created_at=now
    )
    reevaluation = Reevaluation.objects.create(
        source=version, target=version, devices=["cpu"], asked_by=admin, created_at=now
    )
    tuning = Tuning.objects.create(
        verifier="compilation", language_model=make.make_judge(), seed=1, examples=[],
        created_at=now,
    )  # fmt: skip
    note = Announcement.objects.create(
        kind="note", text="All is well.", made_by=admin, created_at=now
    )
    return {
        "case_id": case.pk, "reevaluation_id": reevaluation.pk, "tuning_id": tuning.pk,
        "announcement_id": note.pk, "runner_id": make.make_runner().pk,
        "invitation_id": invite(note="a friend", user=admin, now=now)[0].pk,
    }  # fmt: skip
