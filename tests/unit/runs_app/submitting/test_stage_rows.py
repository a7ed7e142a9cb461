"""Pages show the stages `profile` and `audit` in the modes that have them, and in no other."""

from __future__ import annotations

import pytest

from gpu_runner.data.verdict import Mode, Stage
from runs_app.submitting.page import stage_rows


@pytest.mark.parametrize("mode", Mode)
def test_each_mode_shows_the_stages_that_it_can_reach(mode: Mode) -> None:
    shown = [row.stage for row in stage_rows(mode.value, [], 1, None)]
    if mode is Mode.COMPILE:
        assert shown == [Stage.BUILD]
    else:
        assert (Stage.PROFILE in shown) == (mode is Mode.PROFILE)
        assert (Stage.AUDIT in shown) == (mode is Mode.AUDIT)
        assert len(shown) == len(Stage) - 2 + (mode in (Mode.PROFILE, Mode.AUDIT))
