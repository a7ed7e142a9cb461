"""What a terminal shows of a result beside its times."""

from __future__ import annotations

from gpu_runner.data.codec import decode
from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.integrity import Audit, AuditCheck, AuditState, Check, Suspicion
from gpu_runner.data.verdict import Mode, Verdict
from gpu_runner.supervisor.report import describe


def printed(
    verdict: Verdict, audit: Audit | None, *suspicions: Suspicion, **environment: object
) -> list[str]:
    """The words of each line that a terminal shows of such a result."""
    result = EvaluationResult(
        evaluation_id="local",
        attempt=1,
        verdict=verdict,
        reason="",
        mode=Mode.AUDIT,
        device="cpu",
        task="softmax",
        task_digest="",
        solution_digest="",
        latency_ns=1000.0 if verdict is Verdict.CORRECT else None,
        audit=audit,
        suspicions=suspicions,
        environment=decode(Environment, environment),
    )
    return [" ".join(line.split()) for line in describe(result).splitlines()]


def test_terminal_shows_each_check_and_those_that_are_required_but_not_made() -> None:
    checks = (
        AuditCheck(name="memcheck", state=AuditState.PASSED, reason="no errors"),
        AuditCheck(name="clock", state=AuditState.SKIPPED, reason="no ncu\non this host"),
    )
    lines = printed(Verdict.CORRECT, Audit(checks=checks, required=("memcheck", "racecheck")))
    begin = lines.index("audit: not passed")
    assert lines[begin + 1 : begin + 4] == [
        "memcheck passed required no errors",
        "clock skipped not required no ncu on this host",
        "racecheck not made required",
    ]
    assert "audit: passed" in printed(Verdict.CORRECT, Audit(checks=checks, required=("memcheck",)))


def test_terminal_shows_suspicions_and_what_a_site_would_do() -> None:
    clock = Suspicion(check=Check.SOURCE, reason="clock: it reads\na clock", line=5)
    library = Suspicion(check=Check.LIBRARY, reason="x" * 1000)
    hold = "a site would hold this result back for an admin's decision"
    lines = printed(Verdict.CORRECT, None, clock, library)
    assert f"suspicions, which prove nothing: {hold}" in lines
    assert "source, line 5: clock: it reads a clock" in lines
    (cut,) = (line for line in lines if line.startswith("library: xxx"))
    assert len(cut) < 250
    wrong = printed(Verdict.WRONG_RESULT, None, clock)
    assert "source, line 5: clock: it reads a clock" in wrong
    assert hold not in "\n".join(wrong)
    plain = "\n".join(printed(Verdict.CORRECT, None))
    assert hold not in plain
    assert "threads" not in plain
    threads = printed(Verdict.CORRECT, None, verified_with_threads=4, races="none in 3 of 3")
    assert "verified with teams of 4 threads; races: none in 3 of 3" in threads
