"""The 73 known ways to cheat a kernel benchmark, and where each of them is tried here.

The kernels themselves name their rows; this table says what a row is and, where no kernel tries it
on a kind of device, why not or which other test does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from gpu_runner.data.verdict import DeviceKind

CPU, CUDA = DeviceKind.CPU, DeviceKind.CUDA

SAFETY = MappingProxyType({CPU: "test_host_safety.py", CUDA: "tests/gpu/test_host_safety.py"})
BUILDER = MappingProxyType({CPU: "test_builder_safety.py"})


@dataclass(frozen=True)
class Row:
    """One way to cheat.

    cases: of test_bad_kernels.py that try it on a CPU. elsewhere: for a kind of device, other tests
    that do. why_not: for one, why no submission can try it.
    """

    number: int
    title: str
    cases: tuple[str, ...] = ()
    elsewhere: Mapping[DeviceKind, str] = field(default_factory=lambda: MappingProxyType({}))
    why_not: Mapping[DeviceKind, str] = field(default_factory=lambda: MappingProxyType({}))

    def instead(self, kind: DeviceKind) -> str:
        """What there is where no kernel of its own tries it; empty if nobody does."""
        if kind in self.why_not:
            return f"does not apply: {self.why_not[kind]}"
        cases = [f"test_bad_kernels.py ({case})" for case in self.cases if kind is CPU]
        return "; ".join([*cases, *([self.elsewhere[kind]] if kind in self.elsewhere else [])])


def _never(why: str) -> Mapping[DeviceKind, str]:
    return MappingProxyType({CPU: why, CUDA: why})


def _no_cpu(why: str) -> Mapping[DeviceKind, str]:
    return MappingProxyType({CPU: why})


ROWS = (
    Row(1, "hands out freed memory that held the reference's output"),
    Row(2, "relies on an output that was set to zero"),
    Row(3, "replays an output, changed a little"),
    Row(4, "reads out of bounds, and is lucky"),
    Row(5, "finds a reference in the device's memory", why_not=_no_cpu("its twin there is row 6")),
    Row(6, "scans the host's memory for answers and keys"),
    Row(7, "walks the interpreter's objects and frames"),
    Row(8, "writes over a reference in shared memory"),
    Row(9, "caches by pointer"),
    Row(10, "caches by shape"),
    Row(11, "caches by a sample of the content"),
    Row(12, "replays outputs in the order of calls", cases=("caches by call",)),
    Row(13, "prepares weights once, outside the time"),
    Row(14, "keeps results in files between processes", cases=("writes outside its tmpfs",)),
    Row(15, "replays a graph with stale pointers", why_not=_no_cpu("a CPU has no graphs")),
    Row(16, "counts calls: right in the warm-up, idle afterwards"),
    Row(17, "sniffs whether it is checked or timed"),
    Row(18, "does a batch of calls in one go"),
    Row(19, "defers work to a later call"),
    Row(20, "works on another stream", why_not=_no_cpu("a CPU has no streams; row 21 is the twin")),
    Row(21, "works in a thread after it has returned"),
    Row(22, "works before the clock starts, in a resident helper"),
    Row(
        23, "leaves out the wait for the device", why_not=_never("the runner waits, not the kernel")
    ),
    Row(24, "patches the clock", cases=("claims one nanosecond", "claims ages")),
    Row(25, "patches the statistics of the times"),
    Row(26, "patches the table of imports or the code of a function"),
    Row(27, "moves the start of the measurement"),
    Row(28, "switches the profiler off", why_not=_no_cpu("no profiler is its clock there")),
    Row(29, "tells a time so small that an average breaks"),
    Row(30, "games the stopping rule"),
    Row(31, "slows down the baseline"),
    Row(32, "computes in a lower precision"),
    Row(33, "hands out a constant"),
    Row(34, "treats inputs as zeros or the identity", cases=("zeros",)),
    Row(35, "relies on the statistics of random inputs"),
    Row(36, "computes a part and scales it up", cases=("drops the tail",)),
    Row(37, "chooses an unsafe algorithm by a few samples"),
    Row(38, "knows the listed shapes alone"),
    Row(39, "hands out NaN where a comparison forgives it", cases=("nan",)),
    Row(40, "changes inputs that the reference reads later", cases=("writes to an input",)),
    Row(41, "hands out an input"),
    Row(42, "predicts or reseeds the random numbers"),
    Row(43, "patches the reference or the comparison"),
    Row(44, "edits the tolerances"),
    Row(45, "calls a vendor's library"),
    Row(46, "falls back to the framework"),
    Row(47, "inherits the reference"),
    Row(48, "shows a kernel that never runs"),
    Row(49, "prints a forged result", cases=("claims success",)),
    Row(50, "exits with success", cases=("exit",)),
    Row(51, "writes into the grader's pipe", cases=("says it is done before it is",)),
    Row(52, "sends an object that runs code in its reader"),
    Row(53, "forges results in the runner's memory"),
    Row(54, "invents a log or a curve"),
    Row(
        55,
        "runs in the grader while it is compiled",
        why_not=_never("building runs a compiler and nothing else; what runs at loading is row 59"),
    ),
    Row(56, "kills or stalls the grader"),
    Row(57, "traces another process or reads its memory", elsewhere=SAFETY),
    Row(58, "leaves settings for the next run", elsewhere=SAFETY),
    Row(59, "runs as its library is loaded"),
    Row(60, "includes a secret file", cases=("includes a secret",), elsewhere=BUILDER),
    Row(61, "embeds a file by assembly", elsewhere=BUILDER),
    Row(62, "adds options or plugins to the compiler", elsewhere=BUILDER),
    Row(63, "is a bomb for the compiler", cases=("endless template",), elsewhere=BUILDER),
    Row(
        64,
        "fills memory, disk or the process table",
        cases=(
            "allocates 40 GB",
            "touches 40 GB piecewise",
            "hides 3 GB in shared memory",
            "floods stdout",
        ),
        elsewhere=SAFETY,
    ),
    Row(65, "uses the network", cases=("network", "reads secrets"), elsewhere=SAFETY),
    Row(
        66,
        "keeps its data in a part of the cache that a flush spares",
        why_not=_no_cpu("no such part"),
    ),
    Row(67, "warms the caches between the flush and the start"),
    Row(68, "chooses inputs that save power", why_not=_never("the supervisor chooses the inputs")),
    Row(69, "sleeps so that the device's boost recovers"),
    Row(70, "corrupts the context of whoever runs next"),
    Row(71, "leaves limits of the device or process changed"),
    Row(72, "describes its outputs falsely: address, size or strides"),
    Row(73, "aliases an output with an input, or with another output"),
)
