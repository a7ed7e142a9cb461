"""Each strategy through workers, queues, streams and a language model's endpoint."""

from __future__ import annotations

from collections import Counter

import pytest
from django.core.management import call_command

from runs_app.models import Run
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Role
from tests.integration.conftest import SEED, Site

pytestmark = pytest.mark.django_db(transaction=True)

OTHERS = pytest.mark.thorough(
    reason="evolve, cudamaster and autotune go the same way, and unit tests show its decisions"
)
TEMPERATURES = [0.2, 0.6, 0.9]
TUNABLE = SEED.replace(
    "static const int CORRECT_2000 = 1;",
    "#define SPEED CORRECT_2000  // knob: CORRECT_2000 CORRECT_1700 WRONG_RESULT_0 CORRECT_1800",
)


def roles(site: Site, run: Run) -> list[str]:
    return [ask.role.value for ask in site.asks(run)]


def prompt(site: Site, run: Run, ask: events.Asked) -> str:
    return site.heard(run)[ask.number].prompt


def test_what_is_decided_is_what_the_endpoint_receives(site: Site) -> None:
    site.speak("good")
    run = site.start(
        "evolve",
        {"generations": 2, "proposals": 3, "context": 2},
        temperatures=TEMPERATURES,
        verifiers={"names": ["compile"], "survivors": 2, "model": "large"},
    )
    site.settled(run)
    assert run.reason == "all 2 generations are done"
    asks = site.asks(run)
    assert Counter(roles(site, run)) == {"propose": 6, "verify": 6, "reflect": 6, "recommend": 1}
    assert {ask.model for ask in asks if ask.role in (Role.VERIFY, Role.REFLECT)} == {"large"}
    for ask in asks:
        heard = site.heard(run)[ask.number]
        assert (heard.model, heard.temperature) == (ask.model, ask.temperature)
        assert heard.body["max_tokens"] == ask.max_tokens
    measured = [event for event in site.events(run) if isinstance(event, events.Measured)]
    assert run.best is not None
    assert run.best_latency_ns == min(f.latency_ns for f in measured if f.latency_ns is not None)
    site.replays(run)


@OTHERS
@pytest.mark.parametrize(
    ("strategy", "parameters", "manner", "reason"),
    [
        ("translate", {"tries": 5}, "clumsy", "the translation works"),
        ("fsr", {"n": 2, "depth": 2}, "good", "the search reached depth 2"),
        (
            *("islands", {"islands": 2, "proposals": 6, "floor_stop": 0.0}),
            *("editing", "all 6 proposals were made"),
        ),
    ],
)
def test_other_strategies_come_to_their_end(
    site: Site, strategy: str, parameters: dict[str, object], manner: str, reason: str
) -> None:
    site.speak(manner)
    kernel = {"seed_kernel": "none"} if strategy == "translate" else {}
    run = site.start(strategy, parameters, **kernel)
    site.settled(run)
    assert run.reason.startswith(reason)
    assert run.best is not None
    answered = [event for event in site.events(run) if isinstance(event, events.Answered)]
    assert not [event.problem for event in answered if event.problem]
    site.replays(run)


def test_cudamaster_plans_codes_compiles_and_debugs(site: Site) -> None:
    site.speak("clumsy")
    run = site.start("cudamaster", {"r": 1, "d": 2})
    site.settled(run)
    assert roles(site, run) == ["plan", "code", "compile", "debug", "debug"]
    plan, code, _, first, second = site.asks(run)
    assert "dram_throughput_pct" in prompt(site, run, plan)  # the filtered profile
    for ask, words in ((code, "STRATEGY"), (first, "COMPILE_ERROR"), (second, "WRONG_RESULT")):
        assert words in prompt(site, run, ask)
    measured = [event for event in site.events(run) if isinstance(event, events.Measured)]
    assert [(f.mode.value, f.verdict) for f in measured] == [
        ("profile", "CORRECT"),
        ("profile", "COMPILE_ERROR"),
        ("profile", "WRONG_RESULT"),
        ("profile", "CORRECT"),
    ]
    assert measured[0].bottleneck.startswith("memory")
    assert not run.candidates.filter(feedback=None).exists()  # what failed at once, too
    site.replays(run)


def test_autotune_tries_every_value_once_and_asks_nobody(site: Site) -> None:
    site.speak("good")
    run = site.start("autotune", {"sample": 2}, models=[], source=TUNABLE)
    site.settled(run)
    assert run.reason == "all 4 combinations were measured"
    knobs = list(run.candidates.values_list("knobs", flat=True))
    assert sorted(knob["SPEED"] for knob in knobs) == [
        *["CORRECT_1700", "CORRECT_1800", "CORRECT_2000", "WRONG_RESULT_0"]
    ]
    assert run.best_latency_ns == 1700.0
    assert site.asked() == []
    site.replays(run)


def test_the_command_line_replays_and_tells_of_differences(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.speak("good")
    run = site.start("fsr", {"n": 1, "depth": 1})
    site.settled(run)
    call_command("replay_run", str(run.pk))
    assert "no differences" in capsys.readouterr().out
    event = run.events.get(kind="asked")
    event.payload["temperature"] = 1.9
    event.save()
    with pytest.raises(Exception, match="1 difference"):
        call_command("replay_run", str(run.pk))
    assert "temperature=1.9" in capsys.readouterr().out
