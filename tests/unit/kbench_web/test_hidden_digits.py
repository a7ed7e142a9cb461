"""No address tells a number of hidden workloads, which a kernel chooses, in over three digits."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet
import pytest

from gpu_runner.data import codec
from gpu_runner.data.evaluation import StageTime
from gpu_runner.data.integrity import Audit, AuditCheck, AuditState, Check, Suspicion
from gpu_runner.data.rounding import three_digits
from gpu_runner.data.verdict import Stage
from runs_app.features.transfer.export import exported
from runs_app.models import Evaluation
from tasks_app.disclosure import public_result
from tests import factories as make
from tests.results import told
from tests.unit.kbench_web.marked import COMPILED_NS, SECONDS, TIME_NS, found_in, marked_fields
from tests.unit.kbench_web.test_access import _text, asked_by, everybody, world
from tests.unit.kbench_web.world import World, routes

__all__ = ["world"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def tables(world: World) -> Iterator[str]:
    """Addresses with something behind their question marks."""
    both = "&".join(f"submission={each['submission_id']}" for each in (world.values, world.public))
    for form in ("", "&format=csv", "&format=json", "&format=parquet"):
        for by in ("submission", "agent", "model", "leaders", "matrix"):
            yield f"/leaderboard/?device=cpu&by={by}{form}"
            yield f"/api/v1/leaderboard?device=cpu&by={by}{form}"
        yield f"/compare/submissions/?{both}&all=1{form}"
        yield f"/compare/agents/?agent=robot&agent=alices-agent&device=cpu&all=1{form}"
        yield f"/compare/language-models/?model=oracle&device=cpu&all=1{form}"


def shown(answer: Any) -> str:
    """The text of an answer, also of a table that is no text."""
    if "parquet" not in answer.get("Content-Type", ""):
        return _text(answer)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return str(pyarrow.parquet.read_table(io.BytesIO(body)).to_pylist())


@pytest.mark.parametrize("name", ["alice", "alice's token"])
def test_no_table_and_no_raw_answer_tells_more_than_three_digits(name: str, world: World) -> None:
    """Others are shown less; `test_access` looks at all other addresses."""
    who = everybody(world)[name]
    client = who.client()
    asked = [each for route in asked_by(who) for each in world.addresses(route)]
    raw = [f"{each}?raw=true" for each in asked if each.startswith("/api/")]
    answers = {each: client.get(each) for each in [*raw, *tables(world)]}
    told = {a: found_in(shown(each)) for a, each in answers.items() if each.status_code == 200}
    assert {address: what for address, what in told.items() if what} == {}
    assert len(told) > 30


def test_an_exported_file_tells_no_more_than_three_digits(world: World) -> None:
    stored = Evaluation.objects.exclude(unlisted_speedup=None)
    rounded = {three_digits(COMPILED_NS / TIME_NS)}  # already where boards read it
    assert set(stored.values_list("unlisted_speedup", flat=True)) == rounded
    file, left_out = exported(site="test", note="", now=make.NOW)
    assert (len(file.results), left_out) == (1, [])
    assert found_in(json.dumps(codec.encode(file))) == []


def test_an_admin_sees_every_digit(world: World) -> None:
    """So the test above would see them, too."""
    who = everybody(world)["admin's token"]
    [route] = [r for r in routes() if r.path == "/api/v1/submissions/<submission_id>"]
    text = _text(who.client().get(f"{world.address(route)}?raw=true"))
    assert {"time", "over eager", "how long"} <= set(found_in(text))


def test_what_leaves_is_told_in_few_digits() -> None:
    """All that is derived of hidden workloads and stays in what everybody sees."""
    twice = Suspicion(check=Check.LUCK, reason=f"nine of ten calls of {make.HIDDEN_WORKLOAD} vary")
    other = Suspicion(check=Check.LUCK, reason="nine of ten calls of n1 vary")
    check = AuditCheck(name="memcheck", state=AuditState.PASSED, reason="", duration_s=SECONDS)
    result = told(
        **{
            "unlisted_speedups": {"eager": 2.312053, "best": 0.0012345},
            "stages": [{"stage": "measure", "started_s": 31.51873, "duration_s": SECONDS}],
            "environment": marked_fields()["environment"],
            "suspicions": codec.encode([twice, other, twice]),
            "audit": codec.encode(Audit(checks=(check,))),
        }
    )
    public = public_result(result, [make.HIDDEN_WORKLOAD])
    assert public.unlisted_speedups == {"eager": 2.31, "best": 0.00123}
    assert public.stages == (StageTime(stage=Stage.MEASURE, started_s=31.5, duration_s=16.7),)
    assert [block.name for block in public.environment.blocks] == ["process 1"]
    assert len(public.suspicions) == 2
    assert public.audit is not None
    assert public.audit.checks[0].duration_s == 16.7
