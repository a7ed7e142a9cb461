"""The benches of the optimiser run, and their simulated model reads what prompts really say."""

from __future__ import annotations

import pytest

from runs_app.evolve.commands import Role
from tests.bench import own, own_world, samplers
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
    rows = list(own.rows(own.simulated(8), ["mending", "early stop"], 2))
    assert [row[0] for row in rows] == ["nothing", "mending", "early stop"]
    assert all(len(row) == len(own.COLUMNS) for row in rows)
    assert float(rows[2][5]) > 1  # what is not stopped takes longer
    assert rows[2][7] == "0.0"


def test_ours_is_measured_as_samplers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    land, counted = Landscape(1), list[str]()
    judge = land.judge
    monkeypatch.setattr(land, "judge", lambda s, mode: counted.append(s) or judge(s, mode))
    found = samplers.ours(land, 1, 12)
    assert len(set(counted)) == len(counted) == 12
    assert found.keys() == values_of(counted[0]).keys()
    assert samplers.Rugged(2).best_ns() > 0
