"""What `tests.bench.turnaround` submits, and what it makes of the answers."""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.signature import Signature
from gpu_runner.data.verdict import DeviceKind, Mode
from tests.bench import turnaround
from tests.bench.differences import differences
from tests.bench.published import build_only
from tests.bench.published_sources import Published
from tests.bench.site import ALONE, Kernel, RefusedError, Sent, Site
from tests.bench.turnaround_kernels import (
    EXPECTED,
    GOOD,
    MIXED,
    TORCH,
    good_kernel,
    mixed_kernels,
    odd_kernel,
)
from tests.bench.turnaround_rows import CROWD, ROWS, Measured, Row
from tests.installation import Installation, InstallationError

NAMES = {row.name: row for row in ROWS}


class FakeInstallation(Installation):
    """Starts nothing, and waits no longer than a condition takes to hold."""

    def __init__(self) -> None:
        self.began = 0.0
        self.managed: list[tuple[str, ...]] = []

    def wait(
        self,
        condition: Callable[[], Any],
        what: str,
        timeout_s: float = 0.0,
        pause_s: float = 0.0,
    ) -> None:
        if not any(condition() for _ in range(100)):
            raise InstallationError(what)

    def manage(self, *words: str, **environment: str) -> str:
        self.managed.append(words)
        return ""


class FakeSite(Site):
    """Answers at once: a verdict of the kernel's own, and times as they are told."""

    def __init__(self, depths: list[int] | None = None, **wrong: str) -> None:
        self.kind, self.device = DeviceKind.CPU, "cpu"
        self.fake = self.installation = FakeInstallation()
        self.depths = iter(depths or itertools.repeat(0))
        self.wrong = wrong  # verdict by the name of a kernel
        self.sent: list[Sent] = []
        self.pending = [["compiled"], []]
        self.boards: list[set[str]] = []
        self.times = itertools.cycle([100_000.0, 101_000.0])

    def submit(self, kernel: Kernel, mode: Mode) -> Sent:
        self.sent.append(Sent(kernel, mode, str(len(self.sent)), 0.0))
        return self.sent[-1]

    def evaluation(self, sent: Sent) -> dict[str, Any]:
        name = sent.kernel.name
        measured = {"name": "n1", "hidden": False, "measurement": {"time_ns": next(self.times)}}
        return {
            "verdict": self.wrong.get(name, EXPECTED[name].value),
            "reason": "as it is",
            "status": "FINISHED",
            "created_at": "2026-01-01T00:00:00+00:00",
            "started_at": "2026-01-01T00:00:00.500+00:00",
            "finished_at": "2026-01-01T00:01:00+00:00",
            "result": {
                "stages": [
                    {"stage": "build", "duration_s": 1.0},
                    {"stage": "measure", "duration_s": 2.0},
                ],
                "workloads": [measured, {"name": "h", "hidden": True, "measurement": None}],
                "pending_baselines": self.pending[0]
                if len(self.pending) == 1
                else self.pending.pop(0),
            },
        }

    def verdict(self, sent: Sent) -> tuple[float, dict[str, Any]]:
        return 4.0 + len(self.sent), self.evaluation(sent)

    def queue(self) -> dict[str, Any]:
        return {"depth": next(self.depths), "running": []}

    def ranked_tasks(self) -> set[str]:
        return self.boards.pop(0)


def measured(name: str, site: Site, count: int = 4) -> Measured:
    return NAMES[name].measure(site, count)


def test_a_row_says_percentiles_and_medians_of_stages() -> None:
    found = measured("idle", FakeSite())
    assert found.today == "p50 6.0 s, p95 8.0 s"
    assert found.detail == (
        "4 submissions; the first 5.0 s; medians: waited 0.50, build 1.00, measure 2.00, rest 3.00"
    )
    assert found.faults == []
    assert [s["task"] for s in found.samples] == list(GOOD[:4])


def test_the_time_of_its_build_is_no_part_of_a_wrong_kernels() -> None:
    assert measured("wrong", FakeSite(), 1).today == "p50 4.0 s, p95 4.0 s"


def test_another_verdict_than_a_kernels_own_is_a_fault() -> None:
    [fault] = measured("wrong", FakeSite(wrong="CORRECT"), 1).faults
    assert fault == "wrong vector_add: CORRECT, not WRONG_RESULT: as it is"


def test_a_crowd_waits_before_and_while_somebody_submits() -> None:
    site = FakeSite(depths=[0, 3, CROWD, CROWD + 5, CROWD + 1, CROWD - 1, 0])
    found = measured("crowded", site, 9)
    assert site.fake.managed == [("submit_shipped_kernels", "--device", "cpu")]
    assert len(site.sent) == 2  # and none of them after the crowd had become too small
    assert f"{CROWD + 1} to {CROWD + 5} waited" in found.detail
    with pytest.raises(InstallationError, match="25 jobs never wait"):
        measured("crowded", FakeSite(depths=[1] * 100))


def test_ranked_is_measured_once_all_baselines_are_known() -> None:
    site = FakeSite()
    found = measured("ranked", site)
    assert len(found.samples) == 4
    assert len(site.sent) == 6  # one more for each of two tasks
    never = FakeSite()
    never.pending = [["compiled"]]
    with pytest.raises(InstallationError, match="vector_add has no baselines"):
        measured("ranked", never)


def test_verdicts_an_hour_are_counted_by_the_sites_clock() -> None:
    site = FakeSite(slow="TIME_LIMIT")
    found = measured("mixed", site)
    assert found.today == "3600"  # 60 in a minute
    assert "60 s for" in found.detail
    assert "30 good" in found.detail
    assert len(found.faults) == MIXED["slow"]


def test_boards_are_awaited_and_each_moment_is_said() -> None:
    site = FakeSite()
    site.boards = [set(), {"a"}, {"a", "b", "c"}, {"a", "b", "c", "d", "e", "f"}]
    found = measured("boards", site)
    assert [part.split()[0] for part in found.detail.split(", ")] == ["(ready)", *"abcdef"]


def test_how_far_times_differ_is_said_for_long_and_short_ones() -> None:
    found = measured("repeated", FakeSite())
    assert found.today == "1.0% / -"
    assert differences([{"a": 10.0, "b": 3e4}, {"a": 11.0, "b": 3e4}, {"a": 10.0}]) == {
        "long": 0.0,
        "short": pytest.approx(0.1),
    }


def test_the_mixed_kernels_are_sixty_spread_among_each_other() -> None:
    for kind in DeviceKind:
        kernels = mixed_kernels(kind)
        assert Counter(kernel.name for kernel in kernels) == MIXED
        assert sum(MIXED.values()) == 60
        assert {"good", "wrong", "broken"} <= {kernel.name for kernel in kernels[:8]}
        assert {k.task for k in kernels if k.name == "good"} == set(GOOD)
        assert good_kernel(TORCH, kind).source


@pytest.mark.parametrize("kind", list(DeviceKind))
def test_odd_kernels_compile_unless_they_are_broken(
    kind: DeviceKind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if kind is DeviceKind.CUDA and shutil.which("nvcc") is None:
        pytest.skip("no nvcc on this host")
    assert Signature.parse("void vector_add(const float* A, const float* B, float* C, int N)") == (
        find_task("vector_add").c_signature
    )
    kernels = [
        Published(
            label=sort, task=find_task("vector_add"), source=odd_kernel(sort, kind).source, notes=()
        )
        for sort in ("wrong", "slow", "hanging", "broken")
    ]
    architecture = "sm_90" if kind is DeviceKind.CUDA else ""
    assert build_only(kernels, tmp_path, architecture, kind) == 1
    assert "broken does not compile" in capsys.readouterr().out


def test_sites_are_shared_by_rows_that_may_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []

    class Started(FakeSite):
        def __init__(self, kind: DeviceKind, *options: str, settings: Any = None) -> None:
            super().__init__()
            made.append((*options, *settings))

        def open(self) -> None:
            made.append(("open",))

        def close(self) -> None:
            made.append(("close",))

    monkeypatch.setattr(turnaround, "Site", Started)

    def fails(site: Site, count: int) -> Measured:
        raise RefusedError("queue: 500 oops")

    rows = [NAMES[name] for name in ("crowded", "wrong", "torch")]
    rows.insert(2, dataclasses.replace(NAMES["wrong"], name="failing", measure=fails))
    found = list(turnaround.measure_all(rows, DeviceKind.CPU, 1))
    alone, opened, closed = ("--no-demo", *ALONE), ("open",), ("close",)
    assert made == [
        *(("--no-demo",), opened, closed),  # crowded, whose queue never fills
        *(alone, opened, closed),  # wrong, and the one that fails
        *(alone, opened, closed),  # torch
    ]
    assert [m.today for _, m in found][0::2] == ["not measured"] * 2
    assert found[2][1].faults == ["queue: 500 oops"]


def test_rows_are_chosen_by_name_in_their_own_order() -> None:
    assert [row.name for row in turnaround.chosen_rows("wrong,boards")] == ["boards", "wrong"]
    assert turnaround.chosen_rows("") == list(ROWS)
    with pytest.raises(SystemExit, match="no row 'fast'"):
        turnaround.chosen_rows("fast")


def test_a_row_stands_beside_what_is_to_be_reached() -> None:
    row: Row = NAMES["idle"]
    line = turnaround.cells(row, Measured(today="p50 1.0 s"), DeviceKind.CUDA)
    assert line[1:3] == ["p50 1.0 s", "p50 <= 3 s, p95 <= 5 s"]
    assert turnaround.cells(row, Measured(today=""), DeviceKind.CPU)[2] == "<= 2.5 s"


def test_published_kernels_that_were_unstable_once_are_counted(tmp_path: Path) -> None:
    rows = [{"verdicts": {"CORRECT": 5}}, {"verdicts": {"CORRECT": 4, "UNSTABLE": 1}}]
    settings = {"mode": "quick", "repeat": 5, "beside": 5}
    (tmp_path / "published.json").write_text(json.dumps({"rows": rows, "settings": settings}))
    line = turnaround.published_row(tmp_path)
    assert line[1:3] == ["1 of 2", "<= 2"]
    assert "5 builds beside" in line[0]
