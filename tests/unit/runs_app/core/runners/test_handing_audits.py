"""An audit waits for another runner than the one that it checks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from runs_app.models import Runner
from tests import factories as make
from tests.unit.runs_app.core.runners.asking import audit_of, given, guest, name, names

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def test_another_runner_than_the_one_that_measured_is_waited_for() -> None:
    measured, other = make.make_runner(), make.make_runner()
    audit = audit_of(measured)
    at_work = {"seen_at": make.later(599)}
    Runner.objects.filter(pk=other.pk).update(**at_work)
    for wait_s in (0, 599):
        assert given(measured, make.later(wait_s)) is None
        assert given(measured, make.later(wait_s), job=name(audit)) is None
    assert names(given(other, make.later(1))) == [name(audit)]


def test_a_second_host_of_the_same_token_does_not_check_the_first() -> None:
    measured = make.make_runner(seen_at=make.later(9999))
    second = make.make_runner(seen_at=make.later(9999))
    honest = make.make_runner(token=make.make_runner_token(name="honest"), seen_at=make.later(9999))
    audit = audit_of(measured)
    for runner in (measured, second):
        assert given(runner, make.later(9999)) is None
        assert given(runner, make.later(9999), job=name(audit)) is None
    assert names(given(honest, make.later(9999))) == [name(audit)]


def test_another_host_of_the_same_token_is_waited_for_ten_minutes() -> None:
    measured, _ = make.make_runner(), make.make_runner(seen_at=make.later(600))
    audit = audit_of(measured)
    assert given(measured, make.later(599)) is None
    assert names(given(measured, make.later(601))) == [name(audit)]


@pytest.mark.parametrize(
    "state",
    [{"seen_at": make.NOW - timedelta(seconds=40)}, {"state": "unfit"}, {"wanted": "drain"}],
)
def test_who_is_not_at_work_is_not_waited_for(state: dict[str, Any]) -> None:
    measured, _ = make.make_runner(), make.make_runner(**state)
    audit = audit_of(measured)
    Runner.objects.filter(name="test.nobody").delete()
    assert names(given(measured)) == [name(audit)]


def test_a_guest_is_not_waited_for() -> None:
    measured, _ = make.make_runner(), guest()
    audit = audit_of(measured)
    Runner.objects.filter(name="test.nobody").delete()
    assert names(given(measured)) == [name(audit)]
