"""What the table of published kernels says of results, and that a later call goes on."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import (
    EvaluationResult,
    Measurement,
    Mismatch,
    StageTime,
    WorkloadResult,
)
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Mode, Stage, Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.bench import published as command
from tests.bench.beside import compilers_beside
from tests.bench.evaluations import Entry
from tests.bench.kept import Line, add_line, read_lines
from tests.bench.published_rows import cells, refused_row, row_of, summary
from tests.bench.published_sources import Published, Refused
from tests.bench.tables import percentile

TASK = Task(
    name="copy",
    title="copy",
    format=TaskFormat.KBENCH,
    abi=Abi.C,
    signature="void copy(float* out, const float* in, int N)",
    workloads=(Workload(name="n1", parameters={"N": 1}),),
    files={},
)
KERNEL = Published(label="fp32-copy", task=TASK, source="one", notes=("was adapted",))


def timed(name: str, time_ns: float, *, hidden: bool = False) -> WorkloadResult:
    measurement = Measurement(time_ns=time_ns, low_ns=0.9 * time_ns, high_ns=1.1 * time_ns, calls=9)
    return WorkloadResult(name=name, parameters={}, hidden=hidden, measurement=measurement)


def result(verdict: Verdict, *workloads: WorkloadResult) -> EvaluationResult:
    return EvaluationResult(
        evaluation_id="fp32-copy",
        attempt=1,
        verdict=verdict,
        reason="in a word",
        mode=Mode.QUICK,
        device="gpu",
        task="copy",
        task_digest="",
        solution_digest="",
        latency_ns=1.0 if verdict is Verdict.CORRECT else None,
        workloads=workloads,
        stages=(
            StageTime(stage=Stage.MEASURE, started_s=0.0, duration_s=1.0),
            StageTime(stage=Stage.VERIFY, started_s=1.0, duration_s=0.5),
            StageTime(stage=Stage.MEASURE, started_s=2.0, duration_s=2.0),
        ),
    )


def test_a_row_says_time_interval_differences_and_stages() -> None:
    times = ((100_000, 4_000), (101_000, 4_000), (100_000, 4_400))
    runs = [
        (result(Verdict.CORRECT, timed("a", a), timed("b", b), timed("c", 9e9, hidden=True)), 3.0)
        for a, b in times
    ]
    row = row_of(KERNEL, runs, "key")
    assert row["time_ns"] == pytest.approx(20_000)
    assert row["interval"] == pytest.approx(0.1)
    assert row["long"] == pytest.approx(0.01)
    assert row["short"] == pytest.approx(0.1)
    assert row["stages"] == {"measure": 3.0, "verify": 0.5}
    line = cells(row)
    assert line[:6] == ["fp32-copy", "CORRECT", "20 us", "+-10.0%", "1.0% / 10.0%", "3.0"]
    assert line[-1] == "was adapted"


def test_the_first_evaluation_that_is_not_correct_gives_the_reason() -> None:
    wrong = dataclasses.replace(
        result(Verdict.WRONG_RESULT, timed("a", 5_000.0)),
        mismatch=Mismatch(
            workload="a", output="out", reason="off | by one", wrong_elements=2, elements=7
        ),
        suspicions=(Suspicion(check=Check.LIBRARY, reason="calls one"),),
    )
    runs = [(result(Verdict.CORRECT, timed("a", 5_000.0)), 2.0), (wrong, 1.0)]
    line = cells(row_of(KERNEL, runs, "key"))
    assert line[1] == "CORRECT 1, WRONG_RESULT 1"
    assert line[2:5] == ["-", "-", "- / -"]  # of a kernel that is wrong no time is said
    assert "in a word; out of a: off \\| by one; 2 of 7 elements are wrong" in line[-1]
    assert "for a person: library: calls one" in line[-1]


def test_an_unstable_kernel_has_a_time_and_our_own_faults_their_log() -> None:
    unstable = row_of(KERNEL, [(result(Verdict.UNSTABLE, timed("a", 5_000.0)), 2.0)], "key")
    assert cells(unstable)[2:4] == ["5 us", "+-10.0%"]
    broken = dataclasses.replace(result(Verdict.SYSTEM_ERROR), log="Traceback:\n  no device")
    assert "no device" in cells(row_of(KERNEL, [(broken, 1.0)], "key"))[-1]


def test_the_summary_counts_verdicts_and_says_seconds() -> None:
    rows = [
        row_of(KERNEL, [(result(Verdict.CORRECT, timed("a", t)), s) for t in (1e5, 1.1e5)], "k")
        for s in (1.0, 5.0)
    ]
    rows.append(refused_row(Refused(label="fp32-other", reason="no task")))
    lines = list(summary(rows))
    assert lines[0] == "3 kernels: 4 CORRECT, 1 NOT WRAPPED"
    assert lines[1] == "seconds of an evaluation: p50 1.0, p95 5.0, sum 12"
    assert "20 us or more: 4.8% (fp32-copy)" in lines[2]
    assert cells(rows[2])[1:3] == ["NOT WRAPPED", "-"]


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.51, 3), (0.95, 4), (1.0, 4), (0.0, 1)])
def test_percentiles_are_values_that_were_measured(share: float, value: float) -> None:
    assert percentile([4, 1, 3, 2], share) == value


def test_lines_survive_one_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert read_lines(path) == []
    add_line(path, {"a": 1})
    with path.open("a") as file:
        file.write('{"b": ')
    add_line(path, {"c": 3})
    assert read_lines(path) == [{"a": 1}, {"c": 3}]


def in_this_process(
    work: command.Work, items: Sequence[Published], *, until: float, **_: object
) -> Iterator[Line]:
    """Instead of `spread`, whose processes know nothing of what a test has put in place."""
    yield from (work(item, 0) for item in items if time.monotonic() < until)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """All on one device that need not be there, in this process."""
    monkeypatch.setattr(command, "spread", in_this_process)
    monkeypatch.setattr(command, "devices_of", lambda kind, only: [0])


@pytest.mark.usefixtures("alone")
def test_a_later_call_evaluates_only_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def run_one(entry: Entry, *others: object) -> tuple[EvaluationResult, float]:
        asked.append(entry.label)
        return result(Verdict.CORRECT, timed("a", 5_000.0)), 1.0

    monkeypatch.setattr(command, "run_one", run_one)
    monkeypatch.setattr(command, "build_all", lambda entries, config: None)
    config = SupervisorConfig(kind=DeviceKind.CUDA, device="gpu", cache_folder=tmp_path)
    words = ["--repository", ".", "--out", str(tmp_path)]
    options = command.parse_arguments([*words, "--repeat", "2"])
    first = command.measure_all([KERNEL], config, options)
    assert command.measure_all([KERNEL], config, options) == first
    assert asked == ["fp32-copy", "fp32-copy-1"]
    changed = dataclasses.replace(KERNEL, source="two")
    assert len(command.measure_all([changed], config, options)) == 1
    command.measure_all([KERNEL], config, command.parse_arguments(words))
    assert len(asked) == 5
    late = command.parse_arguments([*words, "--repeat", "3", "--minutes", "0"])
    assert command.measure_all([KERNEL], config, late) == []


def test_compilers_are_busy_beside_and_end_with_the_block(tmp_path: Path) -> None:
    good = Entry("good", TASK, 'extern "C" void copy(float* out, const float* in, int N) {}')
    config = SupervisorConfig(cache_folder=tmp_path / "cache")
    bad = dataclasses.replace(good, source="int x = y;")
    with compilers_beside(1, [bad, good], config) as beside:
        until = time.monotonic() + 60
        while beside.made < 3 and time.monotonic() < until:
            time.sleep(0.05)
    made = beside.made
    assert made >= 3
    assert beside.failed >= 2  # every other one: nothing of it was cached
    assert beside.failed < made
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("alone")
def test_the_command_prints_its_table_and_keeps_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = SupervisorConfig(kind=DeviceKind.CUDA, device="gpu", cache_folder=tmp_path)
    good, bad = (dataclasses.replace(KERNEL, label=f"fp32-{name}") for name in ("good", "bad"))
    results = {
        "fp32-good": result(Verdict.CORRECT, timed("a", 5_000.0)),
        "fp32-bad": result(Verdict.SYSTEM_ERROR),
    }
    for name, value in {
        "make_config": lambda kind, cache: config,
        "chosen_kernels": lambda options: ([good, bad], []),
        "build_all": lambda entries, config: None,
        "run_one": lambda entry, *others: (results[entry.label], 2.0),
        "environment": lambda config: {"device_name": "a GPU"},
        "heading": lambda config: "on a GPU",
    }.items():
        monkeypatch.setattr(command, name, value)
    monkeypatch.setattr("sys.argv", ["published", "--repository", ".", "--out", str(tmp_path)])
    assert command.main() == 1  # SYSTEM_ERROR is ours
    printed = capsys.readouterr().out
    assert "on a GPU\nmode quick, 1 evaluations each, 1 at once on a device, 0 b" in printed
    assert "| fp32-good | CORRECT | 5 us |" in printed
    assert "2 kernels: 1 CORRECT, 1 SYSTEM_ERROR" in printed
    assert "0 were not tried" in printed
    whole = json.loads((tmp_path / "published.json").read_text())
    assert [row["label"] for row in whole["rows"]] == ["fp32-good", "fp32-bad"]
    assert whole["settings"] == {"mode": "quick", "repeat": 1, "beside": 0}
    assert len(read_lines(tmp_path / "rows.jsonl")) == 2
