"""The API's document against its answers: what schemathesis makes of it breaks nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from kbench_web.api import api
from runs_app.features.challenges.services import enter
from tests import factories as make
from tests.unit.runs_app.features.challenges.invented import new_challenge

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

contract = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())


OPEN = {
    "task",
    "kernels",
    "device",
    "source",
    "agent",
    "model",
    "models",
    "scenario",
    "tag",
    "dtype",
    "p",
}
OPEN |= {"sort", "abi", "direction", "difficulty", "language", "budget", "seed_kernel", "verifiers"}
OPEN |= {"after", "since", "until", "Idempotency-Key", "parameters"}  # a row's or a key's
OPEN |= {"usd", "tokens", "evaluations", "wall_time_s"}  # a run may have used them up
OPEN |= {"entry", "files"}  # what a name may end with depends on the language
"""Fields with values that depend on the site's rows, or on another field: those may be refused."""


WHOLE, SOME = 40, 5
"""So many requests to one address are all sent, and then one in five: some have hundreds of edges.

`test_none_of_many_requests_breaks_it` sends all of them.
"""


BEARERS = ("none", "read", "submit", "entry")
"""With which token somebody asks."""
USUAL: dict[str, Any] = {"derandomize": True, "deadline": None, "database": None}
USUAL["suppress_health_check"] = list(HealthCheck)


@dataclass(frozen=True)
class Site:
    """What a request may name, and the tokens that it may show."""

    tokens: dict[str, str]
    names: dict[str, Any]
    """Parameter of a path -> a value that exists."""
    numbers: Iterator[int]
    """Of requests."""


@pytest.fixture
def site(jobs: Any, settings: Any) -> Iterator[Site]:
    """One row of each kind, all of one user, who has no limits."""
    settings.API_REQUESTS_PER_MINUTE = 10**9
    settings.MAX_WAITING_PER_USER = settings.MAX_SUBMISSIONS_PER_DAY = 10**6
    settings.MAX_RUNNING_RUNS_PER_USER = 10**6
    for signal in (request_started, request_finished):  # as Django's own test client does
        signal.disconnect(close_old_connections)
    user = make.make_user()
    for name in ("vector_add", "matrix_mul"):  # the document's examples
        make.make_task_version(name=name, signature=f"void {name}(float* out, int N)")
    evaluation = make.make_finished_evaluation(mode="ranked", user=user)
    run = make.make_run(task_version=evaluation.task_version, user=user)
    make.make_candidate(run)
    now = datetime.now(UTC)
    day = {"starts_at": now, "ends_at": now + timedelta(days=1), "now": now}
    challenge = new_challenge(name="scale", tasks=("scale",), **day)
    entry, of_entry = enter(challenge=challenge, user=user, agent="evolver", now=now)
    names: dict[str, Any] = {"submission_id": str(evaluation.submission_id), "run_id": str(run.pk)}
    names |= {"entry_id": str(entry.pk), "slug": "scale", "number": 1}
    tokens = {"read": make.make_token(user, scopes=["read"]), "submit": make.make_token(user)}
    tokens["entry"] = of_entry
    yield Site(tokens, names, itertools.count())
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def refused_for_the_sites_rows(_: Any, response: Any, case: Any) -> None:
    """What the document allows is refused for a value that no document can list, if at all."""
    if case.meta.generation.mode.is_positive and response.status_code == 422:
        problem = response.json()
        assert problem["field"].split(".")[0] in OPEN, problem
        assert problem["reason"]


def check(case: Any, site: Site, bearer: str) -> None:
    """Send the request, and compare its answer with the document."""
    if case.meta.generation.mode.is_positive:
        known = {name: site.names[name] for name in case.path_parameters or ()}
        case.path_parameters = known
    headers = {"Accept-Encoding": "identity"}
    if bearer in site.tokens:
        headers["Authorization"] = f"Bearer {site.tokens[bearer]}"
    case.call_and_validate(
        headers=headers,
        additional_checks=[refused_for_the_sites_rows],
        excluded_checks=[positive_data_acceptance],
    )


@contract.parametrize()
@settings(max_examples=6, **USUAL)
def test_no_request_breaks_the_document(case: Any, site: Site) -> None:
    """Edges of each field, and a few requests at random, of somebody who may do it."""
    number = next(site.numbers)
    if number < WHOLE or number % SOME == 0:
        check(case, site, "submit")


@pytest.mark.sampled(20)
@pytest.mark.parametrize("bearer", ["none", "entry"])
@contract.parametrize()
@settings(max_examples=2, phases=[Phase.generate], **USUAL)
def test_no_request_with_another_token_breaks_it(case: Any, site: Site, bearer: str) -> None:
    check(case, site, bearer)


@pytest.mark.thorough(reason="more of the same requests, which take some minutes")
@pytest.mark.parametrize("bearer", BEARERS)
@contract.parametrize()
@settings(max_examples=50, **USUAL)
def test_none_of_many_requests_breaks_it(case: Any, site: Site, bearer: str) -> None:
    check(case, site, bearer)


def test_a_body_without_required_fields_may_be_left_out() -> None:
    document = api.get_openapi_schema()
    schemas = document["components"]["schemas"]
    optional = {}
    for path, methods in document["paths"].items():
        body = methods.get("post", {}).get("requestBody")
        if body is None:
            continue
        schema = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        if not schemas[schema].get("required"):
            optional[path.rpartition("/")[2]] = body["required"]
    assert {"cancel", "audit", "again", "extend", "entries", "report"} <= set(optional)
    assert not any(optional.values()), f"give these a default body: {optional}"
