"""The tuned numbers of measuring and judging, each with its unit, its reason and its source.

Those of the physical limit stand in `floor`, those by which a task is proven sound in `soundness`.

A source is a measurement (the command or the page that shows it), a publication, or "judgement"
where nobody has measured it. Whoever changes one runs `tests.bench.honest` and the red team again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu_runner.data.plan import Plan
from gpu_runner.data.verdict import Abi, DeviceKind, Mode

# --- What each mode measures -------------------------------------------------------------------


LEAST_CALLS = 3
"""Single calls of a workload in a process at least. Source: a median of fewer is none."""

LEAST_TEAM = 4
"""Threads of an OpenMP team at least where races are looked for, however few processors there are.

With one, a loop without its `reduction` is right. Source: docs/decisions/0046-races.
"""

FIRST_CALLS = Plan(processes=1, min_calls=2, max_calls=2, near=True, team=LEAST_TEAM)
"""Right first, then fast: whoever is wrong hears it before baselines and clocks.

Nothing of it is timed, so OpenMP's teams are large enough for races to show, and fresh memory
holds no zeros (`runner_process.FRESH_MEMORY`). Source: judgement.
"""

_QUICK = Plan(
    processes=1,
    min_calls=6,
    max_calls=24,
    precision=0.02,
    budget_s=0.1,
    max_samples=6,
    bursts=2,
    burst_workloads=1,
    varied=1,
    shapes=2,
)
"""It has no hidden workloads, and runs build on what it finds right.

So it looks at one other family of values for each workload, and at two other shapes, as mode `test`
does. Source: a product of matrices without tails was called right three times, and became a
run's best.
"""

SHAPES_DRAWN = 4
"""Other shapes that are tried and remembered for a task on a device. Source: judgement."""

_RANKED = Plan(
    processes=3,
    min_calls=9,
    max_calls=60,
    extra_processes=3,
    enough_ns=100.0,  # each of three processes; `RESOLUTION_NS`
    first_calls=True,
    hidden=True,
    baselines=True,
    bursts=2,
    is_calibrated=True,
    varied=2,  # three processes: each of six families, all that there are beside one's own
    shapes=SHAPES_DRAWN,  # with the first calls: hidden workloads have odd sizes alone
)
"""A score must repeat: three processes at least, and three more where they differ.

Source: judgement; `tests.bench.repeat` shows how well it repeats.
"""

PLANS = {
    Mode.TEST: Plan(processes=1, min_calls=3, max_calls=3, varied=1, shapes=2),
    Mode.QUICK: _QUICK,
    Mode.PROFILE: _QUICK,  # the profile itself comes after it, from calls of its own
    Mode.RANKED: _RANKED,
    # New seeds by nature, and baselines anew; the tools come after it, with calls of their own.
    Mode.AUDIT: _RANKED,
}
"""By mode. Source: what a mode may cost (docs/results.md)."""

BASELINE_PLAN = Plan(processes=1, min_calls=9, max_calls=60)
"""Of a baseline, as of a ranked kernel. Source: judgement."""

BASELINE_PROCESSES = {DeviceKind.CUDA: 1, DeviceKind.CPU: 2}
"""Processes. A baseline is remembered: where fastest calls count, two must agree on it.

Source: judgement.
"""

# --- From calls to a time ----------------------------------------------------------------------

CPU_QUANTILE = 0.25
"""Quantile of the processes' fastest calls that is a CPU's time: others only slow a call down.

Source: Chen and Revels, Robust benchmarking in noisy environments, 2016.
"""

RESAMPLES = 500
"""Draws of the bootstrap. Source: judgement; 500 leave 12 beyond each edge of 95 %."""

CONFIDENCE = 0.95
"""Of the interval that stands beside a time. Source: custom."""

NOISE_LIMIT = {DeviceKind.CUDA: 0.05, DeviceKind.CPU: 0.15}
"""Relative half-width of an interval above which more processes are measured.

A CPU is shared with the operating system and, on a small host, with the site itself.
Source: `tests.bench.repeat`.
"""

UNSTABLE_FROM = 0.25
"""Relative half-width above which a ranked time, after all processes, is noise and no score.

Source: docs/decisions/0054-unstable; `tests.bench.honest` counts how often honest kernels meet it.
"""

RESOLUTION_NS = {DeviceKind.CUDA: 100.0, DeviceKind.CPU: 250.0}
"""Half-widths in ns that are the clock's own resolution, whatever part of the time they are.

On a CPU, two reads of cold memory more or less: what lies where differs from process to process.
Source: judgement.
"""

MAX_OVERHEAD_NS = 50_000.0
"""An empty measurement that takes more ns means that the host cannot measure. Source: judgement."""

# --- Who did the work --------------------------------------------------------------------------

LIBRARY_SHARE, BY_CHANCE = 0.1, 1e-3
"""Part of the work above which a library that the task forbids has done it, unless so many looks
met it by this chance. Source: judgement.
"""

LEAST_TOLD = 12
"""Threads at work that must have been seen before nobody else is asked whose work it was.

Source: judgement: a library that does half of it is not among twelve once in 4,000 times.
"""

WATCHED_SLOWER = 3.0
"""How much longer a process's calls may take once it may know that it is watched.

Source: judgement; honest kernels of the red team stay below 1.5 on a busy host.
"""

LOOKING_S = (0.3, 0.6, 1.0, 4.0)
"""Seconds after which calls may have been watched enough. Source: measured, 2026-11-25."""

LEAST_WATCHED, MOST_LOOKS = 60, 200
"""Calls without which the last of these seconds are spent, too, and looks that are enough.

Source: judgement; a busy host takes long for each call, and to stop a process.
"""

# --- How calls are mixed -----------------------------------------------------------------------

CALLS_BEFORE_BURSTS = 3
"""Single calls that come first: they may load modules or fill tables. Source: judgement."""

BURST_SHARE = 0.2
"""Part of the draws that are bursts, while there are bursts to be made. Source: judgement."""

VARIED_SHARE = 1 / 16
"""Part of the draws with other input distributions, at any time: no call of a process is safe.

Source: docs/decisions/0033-other-values.
"""

SAME_PLACE_SHARE = 0.5
"""Part of the single calls that get new content where the tensors of the call before lay.

As in a loop. Source: docs/decisions/0068-new-content-at-the-same-addresses.
"""

MOST_BURST_CALLS = {DeviceKind.CUDA: 64, DeviceKind.CPU: 1}
"""Calls of a burst. On a device one starts and ends late, and nothing of that is accounted.

By up to half a millisecond, however many calls it has; on a CPU the scheduler accounts for each
call. Source: docs/decisions/0032-large-bursts.
"""

LONGEST_BURST_S = 0.005
"""What a burst may take, by the times of single calls: a long kernel needs no more.

A GPU at its limit of power lowers its clocks after some 5 ms, and single calls, with pauses in
between, would be the faster ones. Source: a B200, flashinfer's pull request 2899.
"""

DEVICE_BUSY_NS = 1_000_000
"""A trifle that takes the oracle more ns tells of another process's work under way on the device.

It takes 30 us on an idle one, and over 2 ms where two processes share the device by turns.
Source: docs/decisions/0020-cuda-memory.
"""

# --- Empty-kernel calibration ------------------------------------------------------------------

EMPTY_CALLS = {DeviceKind.CUDA: 5, DeviceKind.CPU: 30}
"""Single calls of an empty kernel, for each workload. Source: judgement."""

EMPTY_BURSTS = 10
"""Bursts of an empty kernel, through which a line is laid. Source: judgement."""

CALIBRATED_WORKLOADS = 3
"""Workloads with an empty kernel of a C++ runner: it is the same on all. Source: judgement."""

CALIBRATION_VALID_S = 24 * 3600.0
"""A host is calibrated again after this time, in an audit, and before a claim is raised.

Source: judgement.
"""

PRECISE_NS = {DeviceKind.CUDA: 15_000.0, DeviceKind.CPU: math.inf}
"""Deviation in ns up to which a calibration will do at once.

On a CPU any will: its clock is processor time, which a busy host does not draw out.
Source: docs/decisions/0036-a-blind-clock.
"""

DISTURBED_NS = {DeviceKind.CUDA: math.inf, DeviceKind.CPU: 5_000.0}
"""Spread in ns of single calls, which bound a CPU kernel's time, from which on a host is disturbed.

Source: docs/decisions/0036-a-blind-clock.
"""

VAGUE_VALID_S = {DeviceKind.CUDA: 60.0, DeviceKind.CPU: 10.0}
"""So long a calibration is remembered that is not as precise, or was disturbed.

A bad moment is not to blind the clock. A disturbed one is not tried again at once, as the kernel
meets the same disturbance, unless the clock then says nothing of the kernel (`outside.is_blind`).
Source: docs/decisions/0036-a-blind-clock.
"""

CALIBRATION_ATTEMPTS = 3
"""Of which the most precise counts. Source: judgement."""

WARM_UP_PARTS = 3
"""The first of so many parts of a process's calls does not count: Python's cost twice as much.

Source: seen while it was written.
"""

RECALIBRATIONS = 2
"""How often a clock that contradicts a claim, or says too little, is calibrated again.

Source: docs/integrity.md, the outside clock.
"""

# --- The outside clock -------------------------------------------------------------------------


@dataclass(frozen=True)
class Margin:
    """What the supervisor's clock may be off though both clocks are honest."""

    relative: float
    """Part of the time that clocks, caches and power leave open."""
    least_ns: float
    """Of subtracting what an empty call takes."""
    gate_ns: float = 1_000.0
    """As `least_ns`, of a call that passed the gate."""
    gate_relative: float = 0.02
    """As `relative`, of a call that passed the gate."""
    head_start_ns: float = math.inf
    """How long a device is kept busy at most while its host queues a single call."""
    drain_ns: float = math.inf
    """How long the device's cache takes to write back what a single call leaves in it."""


MARGINS = {
    (DeviceKind.CUDA, Abi.C): Margin(0.04, 500.0, head_start_ns=100_000.0),
    (DeviceKind.CUDA, Abi.TORCH): Margin(0.08, 500.0),
    (DeviceKind.CPU, Abi.C): Margin(0.02, 5_000.0),
    (DeviceKind.CPU, Abi.TORCH): Margin(0.05, 50_000.0, gate_ns=1_500.0, gate_relative=0.03),
}
"""Source: docs/decisions/0029-a-margin; the table in docs/integrity.md."""

WRITE_BACK_RATIO = 1.5
"""Times that a cache takes to write back, by the device's bandwidth, which rests on reading.

Source: docs/decisions/0058-a-burst; the ratio itself is judgement.
"""

CALL_SPREADS = 2.0
"""Spreads of empty calls that a single call may cost beyond its kernel.

It finds the runner's own code and data out of the caches. Source: `tests.bench.honest`.
"""

WARM_ROUNDS = 10
"""Looks at the gate after which a Python call, which stood still, finds its interpreter warm.

Source: judgement; `tests.bench.honest`.
"""

GATE_SHARE = 0.1
"""Part of an empty call's time at the gate that a kernel's may differ by. Source: judgement."""

BURST_DEVIATIONS = 1.5
"""Median deviations of the empty kernel that a burst may be off.

That is little for one burst, but the bound is the smallest of several. Source: judgement.
"""

WIDEST_INTERVAL = 0.1
"""Part of a time that a raised one's interval reaches down to: a runner may claim any numbers.

Source: judgement.
"""

BLIND_SHARE = 0.25
"""An error beyond the margin of more than this part of a bound tells of a bad calibration.

It usually is half of that at most. Source: docs/decisions/0036-a-blind-clock.
"""

BLIND_FROM_NS = 200_000.0
"""Bounds in ns from which on `BLIND_SHARE` counts. Source: docs/decisions/0036-a-blind-clock."""

VAGUE_SHARE, VAGUE_FROM_NS = 0.5, 3_000.0
"""An error of the clock that is a larger part of a time, and more ns, leaves it unconfirmed.

Source: judgement; the margins above.
"""

HOST_COUNTS_NS = 50_000.0
"""From here on, a kernel that its host launches too slowly is given the supervisor's time.

In ns. Source: docs/decisions/0019-what-the-hosts.
"""

# --- What a person must look at ----------------------------------------------------------------

LUCKY_PROCESSES = 3
"""So many must agree that few calls are fast. Source: a ranked evaluation has as many."""

LUCKY_RATIO = 2.0
"""How much slower nine of ten calls may be than the fastest, as a ratio.

Neighbours on the same core make calls slower by 30 to 60 %. Source: `tests.bench.honest`.
"""

LUCKY_NS = 5_000.0
"""And in ns, beyond cold memory. Source: judgement."""

BESIDE_NS = 40_000.0
"""Processor time in ns of a call beside its kernel scatters by so much on a virtual machine.

Source: `tests.bench.honest`, on two virtual processors.
"""

WAITING_NS = 10_000.0
"""So much of it a thread may take that is woken, spins for a moment and sleeps again, in ns.

Source: docs/decisions/0035-waiting-threads.
"""

CLAIM_GAP = 1.25
"""A claim is far off where the supervisor saw more than so many times of it: a person looks.

Source: docs/integrity.md, the outside clock.
"""

# --- Races, profilers --------------------------------------------------------------------------

RACE_CALL_NS = 5e6
"""A workload whose call takes more ns is left to the audit.

Under ThreadSanitizer it takes a hundred times as long. Source: docs/decisions/0046-races.
"""

RACE_SEARCH_S = 1.0
"""No further workload after this long: somebody waits for the verdict. Source: judgement."""

PROFILED_SHARE = 0.6
"""A claim below this share of its kernels' own times is for a person to look at.

Source: judgement.
"""

PROFILED_SLACK_NS = 2000.0
"""What a profiler's time of a launch holds beyond the kernel, in ns. Source: judgement."""

# --- Other input distributions -----------------------------------------------------------------

MOST_OWN_ERROR = 0.5
"""Part of the bound that the reference in the task's dtype may need with other distributions.

A family was chosen for a hidden workload's parameters. On others it may overflow, or come too close
to the bound for kernels that sum up in another order: there it is left out.

Source: `tests.bench.families`.
"""
