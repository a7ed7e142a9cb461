"""The API's document against its answers: what schemathesis makes of it breaks nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests import factories as make
from tests.unit.runs_app.challenges.invented import new_challenge, new_entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

_EXAMPLES = 12
"""Random requests of each operation, beside those that try each field's edges."""
contract = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())


OPEN = {"task", "device", "source", "agent", "model", "models", "scenario", "tag", "dtype", "p"}
OPEN |= {"sort", "abi", "direction", "difficulty", "language", "budget", "seed_kernel", "verifiers"}
OPEN |= {
    "after",
    "since",
    "until",
    "Idempotency-Key",
    "parameters",
}  # a row's id; a key in use; a strategy's
OPEN |= {"usd", "tokens", "evaluations", "wall_time_s"}  # a run may have used them up
"""Fields with values that depend on the site's rows, or on another field: those may be refused."""


@dataclass(frozen=True)
class Site:
    """What a request may name, and the token that it shows."""

    token: str
    names: dict[str, Any]
    """Parameter of a path -> a value that exists."""


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
    entry = new_entry(challenge, user, now=now)
    ids = {"submission_id": str(evaluation.submission_id), "run_id": str(run.pk)}
    ids["entry_id"] = str(entry.pk)
    yield Site(make.make_token(user), {**ids, "slug": "scale", "number": 1})
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def refused_for_the_sites_rows(_: Any, response: Any, case: Any) -> None:
    """What the document allows is refused for a value that no document can list, if at all."""
    if case.meta.generation.mode.is_positive and response.status_code == 422:
        problem = response.json()
        assert problem["field"].split(".")[0] in OPEN, problem
        assert problem["reason"]


@contract.parametrize()
@settings(
    max_examples=_EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_no_request_breaks_the_document(case: Any, site: Site) -> None:
    if case.meta.generation.mode.is_positive:
        known = {name: site.names[name] for name in case.path_parameters or ()}
        case.path_parameters = known
    case.call_and_validate(
        headers={"Authorization": f"Bearer {site.token}", "Accept-Encoding": "identity"},
        additional_checks=[refused_for_the_sites_rows],
        excluded_checks=[positive_data_acceptance],
    )
