"""What is measured of a site: how long people wait, and how well their times repeat."""

from __future__ import annotations

import statistics
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from tests.bench.differences import differences
from tests.bench.kept import Line
from tests.bench.site import ALONE, Document, Kernel, Sent, Site, waited_s
from tests.bench.tables import percentile
from tests.bench.turnaround_kernels import (
    EXPECTED,
    GOOD,
    REPEATED,
    TORCH,
    good_kernel,
    inline_kernel,
    mixed_kernels,
    odd_kernel,
    python_kernel,
    tuned_kernel,
)

CROWD = 25
"""Jobs that wait in the background while somebody submits."""
BOARDS = 5
FRESH_EVALUATIONS = 5
_BOARDS_S, _MIXED_S, _BASELINES_S, _CROWD_S = 3600.0, 3600.0, 300.0, 300.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A row's figure, what else is to be known of it, and all that it was made of."""

    today: str
    detail: str = ""
    samples: Sequence[Line] = ()
    faults: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table. `shared`: the site was used before, or will be used after it."""

    name: str
    what: str
    measure: Callable[[Site, int], Measured]
    to_reach: Mapping[DeviceKind, str] = field(default_factory=dict)
    shared: bool = True
    options: Sequence[str] = ("--no-demo",)
    settings: Mapping[str, str] = field(default_factory=dict)
    kinds: Sequence[DeviceKind] = tuple(DeviceKind)


def sample(site: Site, kernel: Kernel, mode: Mode) -> Line:
    """Submit a kernel and wait for its verdict, which is printed at once: a row takes minutes."""
    sent = site.submit(kernel, mode)
    seconds, evaluation = site.verdict(sent)
    line = line_of(sent, seconds, evaluation)
    stages = ", ".join(f"{name} {took_s:.1f}" for name, took_s in line["stages"].items())
    print(f"  {kernel.task} {mode}: {line['verdict']}, {seconds:.1f} s ({stages})", flush=True)
    return line


def line_of(sent: Sent, seconds: float, evaluation: Document) -> Line:
    """What is kept of a submission; times in ns by listed workload, all others in seconds."""
    result = evaluation.get("result") or {}
    return {
        "kernel": sent.kernel.name,
        "task": sent.kernel.task,
        "mode": sent.mode.value,
        "seconds": seconds,
        "waited": waited_s(evaluation) or 0.0,
        "stages": {s["stage"]: s["duration_s"] for s in result.get("stages", ())},
        "verdict": evaluation["verdict"],
        "reason": evaluation["reason"],
        "times": {
            w["name"]: w["measurement"]["time_ns"]
            for w in result.get("workloads", ())
            if w.get("measurement") and not w.get("hidden")
        },
    }


def faults_of(samples: Sequence[Line]) -> list[str]:
    """Verdicts that are not those of their kernels."""
    return [
        f"{s['kernel']} {s['task']}: {s['verdict']}, not {EXPECTED[s['kernel']]}: {s['reason']}"
        for s in samples
        if s["verdict"] != EXPECTED[s["kernel"]]
    ]


def percentiles(seconds: Sequence[float]) -> str:
    """The figure of most rows."""
    middle, high = percentile(seconds, 0.5), percentile(seconds, 0.95)
    return f"p50 {middle:.1f} s, p95 {high:.1f} s"


def stage_medians(samples: Sequence[Line]) -> str:
    """Median seconds of waiting, of each stage, and of all that is in none."""
    parts: dict[str, list[float]] = {"waited": [s["waited"] for s in samples]}
    for one in samples:
        for stage, took_s in one["stages"].items():
            parts.setdefault(stage, []).append(took_s)
    rest = [s["seconds"] - s["waited"] - sum(s["stages"].values()) for s in samples]
    words = [f"{name} {statistics.median(v):.2f}" for name, v in (*parts.items(), ("rest", rest))]
    return ", ".join(words)


def _timed(samples: Sequence[Line], seconds: Sequence[float] = (), detail: str = "") -> Measured:
    """A row of percentiles, of the whole time unless other `seconds` are given."""
    used = seconds or [s["seconds"] for s in samples]
    words = [f"{len(used)} submissions", detail, f"medians: {stage_medians(samples)}"]
    return Measured(
        today=percentiles(used),
        detail="; ".join(filter(None, words)),
        samples=samples,
        faults=faults_of(samples),
    )


def idle(site: Site, count: int) -> Measured:
    """A person's kernels, one after the other, on a site where nothing else happens."""
    samples = []
    for number in range(count):
        site.wait_until_idle()
        kernel = good_kernel(GOOD[number % len(GOOD)], site.kind)
        samples.append(sample(site, kernel, Mode.QUICK))
    return _timed(samples, detail=f"the first {samples[0]['seconds']:.1f} s")


def crowded(site: Site, count: int) -> Measured:
    """The same while the site's own jobs wait, from the first moment at which they do."""
    fill = threading.Thread(
        target=site.installation.manage,
        args=("submit_shipped_kernels", "--device", site.device),
        daemon=True,
    )
    fill.start()
    site.installation.wait(
        lambda: site.queue()["depth"] >= CROWD, f"{CROWD} jobs never wait", _CROWD_S
    )
    samples, depths, began_s = [], [], site.age_s
    for number in range(count):
        depth = site.queue()["depth"]
        if depth < CROWD and not fill.is_alive():
            break
        depths.append(depth)
        kernel = good_kernel(GOOD[number % len(GOOD)], site.kind)
        samples.append(sample(site, kernel, Mode.QUICK))
    first = f"the first {samples[0]['seconds']:.1f} s, {began_s:.0f} s after the start"
    return _timed(samples, detail=f"{first}; {min(depths)} to {max(depths)} waited")


def wrong(site: Site, count: int) -> Measured:
    """A kernel that is wrong, without the time of its build."""
    samples = []
    for _ in range(count):
        site.wait_until_idle()
        samples.append(sample(site, odd_kernel("wrong", site.kind), Mode.QUICK))
    return _timed(samples, [s["seconds"] - s["stages"].get("build", 0.0) for s in samples])


def first_ranked(site: Site, count: int) -> Measured:
    """Tasks of which nothing is known on the device yet."""
    samples = []
    for task in GOOD[: max(2, count // 4)]:
        site.wait_until_idle()
        samples.append(sample(site, good_kernel(task, site.kind), Mode.RANKED))
    return _timed(samples)


def ranked(site: Site, count: int) -> Measured:
    """Once more, when all baselines of the task are known."""
    samples = []
    for task in GOOD[:2]:
        kernel = good_kernel(task, site.kind)
        _know_baselines(site, kernel)
        for _ in range(max(2, count // 6)):
            site.wait_until_idle()
            samples.append(sample(site, kernel, Mode.RANKED))
    return _timed(samples)


def _know_baselines(site: Site, kernel: Kernel) -> None:
    """Submit a kernel, and wait until its result has all baselines."""
    sent = site.submit(kernel, Mode.RANKED)
    site.verdict(sent)

    def is_known() -> bool:
        result = site.evaluation(sent).get("result") or {}
        return not result.get("pending_baselines")

    site.installation.wait(is_known, f"{kernel.task} has no baselines", _BASELINES_S, 1.0)


def torch(site: Site, count: int) -> Measured:
    """Torch extensions, each compiled for the first time."""
    samples = []
    for _ in range(max(2, count // 6)):
        site.wait_until_idle()
        samples.append(sample(site, good_kernel(TORCH, site.kind), Mode.QUICK))
    return _timed(samples)


def python(make: Callable[[DeviceKind], Kernel]) -> Callable[[Site, int], Measured]:
    """New Python modules, and then each of them with another comment."""

    def measure(site: Site, count: int) -> Measured:
        new: list[Line] = []
        changed: list[Line] = []
        for _ in range(max(2, count // 3)):
            kernel = make(site.kind)
            for samples in (new, changed):
                site.wait_until_idle()
                samples.append(sample(site, kernel, Mode.QUICK))
        middle = [percentile([s["seconds"] for s in samples], 0.5) for samples in (new, changed)]
        return Measured(
            today=f"p50 {middle[0]:.1f} s / {middle[1]:.1f} s",
            detail=f"new: {_timed(new).detail}; changed: {_timed(changed).detail}",
            samples=[*new, *changed],
            faults=faults_of([*new, *changed]),
        )

    return measure


def mixed(site: Site, count: int) -> Measured:
    """Many people at once: how many verdicts an hour. `count` says nothing here."""
    site.wait_until_idle()
    sent = [site.submit(kernel, Mode.QUICK) for kernel in mixed_kernels(site.kind)]

    def are_over() -> bool:
        queue = site.queue()
        return not queue["depth"] and not queue["running"]

    site.installation.wait(are_over, "they never end", _MIXED_S, 0.5)
    found = [site.verdict(each)[1] for each in sent]
    began = min(datetime.fromisoformat(e["created_at"]) for e in found)
    ended = max(datetime.fromisoformat(e["finished_at"]) for e in found)
    took_s = (ended - began).total_seconds()
    samples = [
        line_of(each, _seconds(e["created_at"], e["finished_at"]), e)
        for each, e in zip(sent, found, strict=True)
    ]
    sorts = ", ".join(f"{n} {name}" for name, n in Counter(s["kernel"] for s in samples).items())
    return Measured(
        today=f"{len(found) / took_s * 3600:.0f}",
        detail=f"{took_s:.0f} s for {sorts}; medians: {stage_medians(samples)}",
        samples=samples,
        faults=faults_of(samples),
    )


def _seconds(first: str, last: str) -> float:
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def boards(site: Site, count: int) -> Measured:
    """A new installation by itself: when its boards hold something. `count` says nothing here."""
    seen: dict[str, float] = {"(ready)": site.age_s}

    def are_filled() -> bool:
        for task in sorted(site.ranked_tasks() - seen.keys()):
            seen[task] = site.age_s
            print(f"  {task}: {seen[task]:.0f} s", flush=True)
        return len(seen) > BOARDS

    site.installation.wait(
        are_filled, f"{BOARDS} tasks never have ranked rows", _BOARDS_S, pause_s=1.0
    )
    moments = sorted(seen.values())
    words = [f"{name} {at_s:.0f} s" for name, at_s in seen.items()]
    return Measured(today=f"{moments[BOARDS]:.0f} s", detail=", ".join(words))


def repeated(mode: Mode) -> Callable[[Site, int], Measured]:
    """The same kernel again and again: how far its times differ."""

    def measure(site: Site, count: int) -> Measured:
        samples: list[Line] = []
        found: dict[str, list[float]] = {"long": [], "short": []}
        for task in REPEATED:
            own = []
            for _ in range(FRESH_EVALUATIONS):
                site.wait_until_idle()
                own.append(sample(site, good_kernel(task, site.kind), mode))
            for name, share in differences([s["times"] for s in own]).items():
                found[name] += [] if share is None else [share]
            samples += own
        words = [f"{max(found[name]):.1%}" if found[name] else "-" for name in ("long", "short")]
        return Measured(
            today=" / ".join(words),
            detail=f"largest over the workloads of {' and '.join(REPEATED)}",
            samples=samples,
            faults=[f for f in faults_of(samples) if Verdict.UNSTABLE not in f],
        )

    return measure


def _of_python(name: str, what: str, make: Callable[[DeviceKind], Kernel], gpu: str) -> Row:
    return Row(
        name=name,
        what=f"{what}, `quick`: new / only a comment changed",
        measure=python(make),
        to_reach={_GPU: gpu},
        settings=ALONE,
        kinds=(_GPU,) if make is tuned_kernel else tuple(DeviceKind),
    )


_SIZES = "workloads of >= 20 us / below"
_GPU, _CPU = DeviceKind.CUDA, DeviceKind.CPU
ROWS = (
    Row(
        name="boards",
        what=f"after `up` on a fresh data folder: {BOARDS} tasks with ranked rows",
        measure=boards,
        to_reach={_CPU: "<= 5 min"},
        shared=False,
        options=(),
    ),
    Row(
        name="crowded",
        what=f"c ABI, `quick`: submit to verdict, {CROWD} background jobs queued, a fresh site",
        measure=crowded,
        to_reach={_GPU: "<= 6 s"},
        shared=False,
    ),
    Row(
        name="idle",
        what="c ABI, `quick`: submit to verdict, idle site",
        measure=idle,
        to_reach={_GPU: "p50 <= 3 s, p95 <= 5 s", _CPU: "<= 2.5 s"},
        settings=ALONE,
    ),
    Row(
        name="wrong",
        what="a wrong kernel, build aside",
        measure=wrong,
        to_reach={_GPU: "<= 3 s"},
        settings=ALONE,
    ),
    Row(
        name="torch",
        what="torch ABI, `quick`, cold",
        measure=torch,
        to_reach={_GPU: "<= 15 s"},
        settings=ALONE,
    ),
    _of_python("python", "a Python module", python_kernel, "6 s / 4 s"),
    _of_python("tuned", "the same with four tiles to choose from", tuned_kernel, "10 s / 4 s"),
    _of_python("inline", "`load_inline`", inline_kernel, "12 s / 4 s"),
    Row(
        name="repeated",
        what=f"{FRESH_EVALUATIONS} fresh evaluations, `quick`: largest difference, {_SIZES}",
        measure=repeated(Mode.QUICK),
        to_reach={_GPU: "<= 1 % / <= 5 %"},
        settings=ALONE,
    ),
    Row(
        name="mixed",
        what="`quick` verdicts an hour, 60 mixed kernels at once",
        measure=mixed,
        to_reach={_GPU: ">= 1,200"},
        settings=ALONE,
    ),
    Row(
        name="first_ranked",
        what="first `ranked` of a task",
        measure=first_ranked,
        to_reach={_CPU: "<= 15 s"},
        settings=ALONE,
    ),
    Row(
        name="ranked",
        what="`ranked`, baselines known",
        measure=ranked,
        to_reach={_GPU: "<= 12 s"},
        settings=ALONE,
    ),
    Row(
        name="repeated_ranked",
        what=f"{FRESH_EVALUATIONS} fresh evaluations, `ranked`: largest difference, {_SIZES}",
        measure=repeated(Mode.RANKED),
        to_reach={_GPU: "<= 1 % / <= 5 %"},
        settings=ALONE,
    ),
)
"""In the order in which they are measured: sites that must be fresh first, and what is followed by
audits last."""
