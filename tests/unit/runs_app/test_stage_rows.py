"""Pages show the stage `profile` in the mode that has it, and in no other."""

from __future__ import annotations

import pytest

from gpu_runner.data.verdict import Mode, Stage
from runs_app.evaluation_page import stage_rows


@pytest.mark.parametrize("mode", Mode)
def test_each_mode_shows_the_stages_that_it_can_reach(mode: Mode) -> None:
    shown = [row.stage for row in stage_rows(mode.value, [], 1, None)]
    if mode is Mode.COMPILE:
        assert shown == [Stage.BUILD]
    else:
        assert (Stage.PROFILE in shown) == (mode is Mode.PROFILE)
        assert len(shown) == len(Stage) - (mode is not Mode.PROFILE)
