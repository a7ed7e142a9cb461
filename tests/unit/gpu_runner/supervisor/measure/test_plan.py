"""When a workload has been measured enough."""

from __future__ import annotations

from dataclasses import replace

from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import FIRST_CALLS, PLANS
from gpu_runner.data.verdict import Mode
from gpu_runner.supervisor.measure.collected import is_done

PLAN = Plan(processes=1, min_calls=8, max_calls=20, precision=0.01, budget_s=1.0)


def test_steady_times_stop_at_the_fewest_calls() -> None:
    assert not is_done(PLAN, [100.0] * 7, spent_s=0.5)
    assert is_done(PLAN, [100.0] * 8, spent_s=0.0)


def test_noisy_times_go_on_until_calls_or_seconds_run_out() -> None:
    noisy = [100.0, 200.0] * 5
    assert not is_done(PLAN, noisy, spent_s=0.5)
    assert is_done(PLAN, noisy, spent_s=1.0)
    assert is_done(PLAN, noisy * 2, spent_s=0.0)


def test_slow_calls_are_given_up_after_three() -> None:
    assert not is_done(PLAN, [100.0] * 2, spent_s=9.0)
    assert is_done(PLAN, [100.0] * 3, spent_s=9.0)


def test_calls_that_differ_by_times_get_more_time() -> None:
    short = replace(PLAN, budget_s=0.1)
    assert is_done(short, [100.0, 150.0, 190.0], spent_s=0.2)
    assert not is_done(short, [100.0, 150.0, 210.0], spent_s=0.2)
    assert is_done(short, [100.0, 150.0, 210.0], spent_s=1.0)
    assert not is_done(short, [210.0] * 3, spent_s=0.2, claims=[100.0] * 3)


def test_outputs_too_large_to_keep_are_sampled_but_never_less_than_two() -> None:
    assert PLAN.sampled_calls(100) == PLAN.max_samples
    assert PLAN.sampled_calls(1 << 40) == PLAN.min_samples


def test_ranked_means_fresh_processes_hidden_workloads_and_baselines() -> None:
    ranked = PLANS[Mode.RANKED]
    assert ranked.processes >= 3
    assert ranked.hidden
    assert ranked.baselines


def test_quick_answers_soon_and_ranked_checks_before_it_times() -> None:
    assert PLANS[Mode.QUICK].looks() == (1,)
    assert not PLANS[Mode.QUICK].baselines
    assert PLANS[Mode.RANKED].first_calls
    assert FIRST_CALLS.team >= 4


def test_noise_is_looked_at_seldom_and_never_beyond_the_most_processes() -> None:
    assert PLAN.looks() == (1,)
    assert PLANS[Mode.RANKED].looks() == (3, 6)
    plan = PLANS[Mode.RANKED]
    assert (plan.for_unlisted().processes, plan.for_checks().processes) == (3, 1)


def test_an_interval_within_the_clocks_resolution_is_enough() -> None:
    short = [2500.0, 2600.0] * 5
    assert not is_done(PLAN, short, spent_s=0.5)
    assert is_done(PLAN, short, spent_s=0.5, enough_ns=100.0)
    assert not is_done(PLAN, [ns * 10 for ns in short], spent_s=0.5, enough_ns=100.0)
