"""The benches of the optimiser run, and their simulated model reads what prompts really say."""

from __future__ import annotations

import pytest

from runs_app.evolve.commands import Role
from tests.bench import own, own_world, samplers
from tests.bench.limits import Purse
from tests.unit.runs_app.evolve.driving import a_config, a_problem, begin
from tests.unit.runs_app.evolve.worlds import Landscape, values_of


def test_the_simulated_model_learns_from_the_notes_of_a_real_prompt() -> None:
    world = own_world.own_world(3)
    config = a_config(parameters={"proposals": 40, "notes": 5, "floor_stop": 0.0})
    problem = a_problem(seed_source=own_world.source(""), floor_ns=None)
    begin(problem, config, world).go()
    asks = [ask for ask, _ in world.asks.values() if ask.role is Role.RECOMMEND]
    written = [own_world.notes(ask.prompt.messages[-1].content) for ask in asks]
    helped, lost = own_world.known(written[-1])
    assert helped
    assert lost
    assert world.stopped > 0
    hardware = own_world.Hardware(3)
    alone = {idea: hardware.factor[idea] for idea in helped & hardware.factor.keys()}
    assert all(factor < 1.02 for factor in alone.values())


def test_the_ablation_compares_the_same_seeds() -> None:
    found, reason = own.runs(own.simulated(8), ["mending", "early stop"], 2)
    assert reason == ""
    rows = list(own.rows(found))
    assert [row[0] for row in rows] == ["nothing", "mending", "early stop"]
    assert all(len(row) == len(own.COLUMNS) for row in rows)
    assert float(rows[2][5]) > 1  # what is not stopped takes longer
    assert rows[2][7] == "0.0"


def purse(**limits: float) -> Purse:
    said: list[str] = []
    times = iter(range(0, 10_000, 20))
    made = Purse(6, 8, say=said.append, clock=lambda: next(times), **limits)  # type: ignore[arg-type]
    made.said = said  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize(
    ("limits", "reason", "whole"),
    [
        ({"most_evaluations": 30}, "30 evaluations leave no run of that size; 3 of 6 runs", 1),
        ({"minutes": 1}, "1 minutes are over", 1),
        ({"usd": 1e-9}, "1e-09 USD pay for no further call; 0 of 6 runs", 0),
    ],
)
def test_a_limit_ends_it_with_the_runs_that_are_whole(
    limits: dict[str, float], reason: str, whole: int
) -> None:
    held = purse(**limits)
    found, why = own.runs(own.simulated(8, held), ["mending", "early stop"], 2)
    assert why.startswith("stopped, as ")
    assert reason in why
    assert len(found[own.WHOLE]) == whole
    assert len(list(own.rows(found))) == sum(map(bool, found.values()))


def test_what_will_be_spent_is_said_before_it_is() -> None:
    assert purse(usd=5, minutes=90, most_evaluations=640).plan() == (
        "6 runs of at most 8 evaluations each; together at most 48 evaluations, 90 minutes, 5 USD"
    )
    assert "no limit of money" in purse().plan()
    held = purse()
    own.runs(own.simulated(8, held), [], 2)
    (said,) = held.said  # type: ignore[attr-defined]
    assert "after one run: 8 evaluations" in said
    assert "at this rate all: 48 evaluations" in said


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--usd", "5"], "--usd: say --price-in and --price-out"),
        (["--minutes", "0"], "--minutes: must be above 0"),
        (["--base-url", "http://localhost:1", "--api-name", "m"], "--yes: nothing was spent"),
    ],
)
def test_wrong_limits_name_the_option(
    words: list[str],
    error: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["own", *words])
    with pytest.raises(SystemExit):
        own.main()
    assert error in capsys.readouterr().err


def test_ours_is_measured_as_samplers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    land, counted = Landscape(1), list[str]()
    judge = land.judge
    monkeypatch.setattr(land, "judge", lambda s, mode: counted.append(s) or judge(s, mode))
    found = samplers.ours(land, 1, 12)
    assert len(set(counted)) == len(counted) == 12
    assert found.keys() == values_of(counted[0]).keys()
    assert samplers.Rugged(2).best_ns() > 0
