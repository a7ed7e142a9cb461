"""Writes for prompts what hardware said of kernels, in short titled sections, and what was lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpu_runner.data.evaluation import Mismatch
from runs_app.core.compiler_log import each_error_once
from runs_app.core.profile.bottleneck import filtered
from runs_app.core.profile.diagnosis import class_line, stall_line, throughput_line
from runs_app.optimiser.evolve.config import ProfileMode
from runs_app.optimiser.evolve.feedback import Feedback, WorkloadTime
from runs_app.optimiser.evolve.history import Candidate, CandidateState, History

CHARACTERS_PER_TOKEN = 3
"""Compiler logs and tables give a tokenizer no more characters a token than this."""


@dataclass(frozen=True)
class Section:
    """A titled piece of feedback."""

    title: str
    text: str


_TINY_NS, _LATENCY_DECIDES = 1000.0, 100.0  # chosen: a launch alone takes microseconds
_TIMES_TOKENS = 700
_NO_LIMITS: Mapping[str, float] = {}
_OF_WORK = ("achieved_flop_per_s", "arithmetic_intensity_flop_per_byte")


def sections(
    feedback: Feedback, mode: ProfileMode, bottleneck: str, limits: Mapping[str, float] = _NO_LIMITS
) -> list[Section]:
    """What a prompt shows of an evaluation; sections with nothing to say are left out.

    mode: none hides the profile and its class, filtered shows the class's metrics, full all.
    limits: by workload in nanoseconds, where the result itself has no physical limit.
    """
    found = [
        ("Verdict", f"{feedback.verdict}: {feedback.reason}".rstrip(": "), 200),
        ("First wrong element", _mismatch(feedback.mismatch), 250),
        ("Times", _times(feedback, limits), _TIMES_TOKENS),
        ("Compiler report", _compiler(feedback), 800),
        ("What the kernel printed", feedback.output.strip(), 200),
        ("Profile", _profile(feedback, mode, bottleneck), 700),
    ]  # title, text, and the tokens that it may take
    return [Section(title, clip(text, tokens)) for title, text, tokens in found if text]


def times_text(feedback: Feedback, limits: Mapping[str, float]) -> str:
    """The overall time and that of each workload, with their noise, beside what is known."""
    return clip(_times(feedback, limits), _TIMES_TOKENS)


def by_workload(feedback: Feedback | None) -> str:
    """The time of each listed workload in the task's order, for a line of a list; "" for one."""
    times = feedback.workloads if feedback is not None else ()
    if len(times) < 2:
        return ""
    return f" ({', '.join(short_us(each.time_ns) for each in times)} us by workload)"


def short_us(time_ns: float) -> str:
    """Microseconds with three digits, and no exponent."""
    return f"{time_ns / 1e3:.3g}" if time_ns < 999_500 else f"{time_ns / 1e3:.0f}"


def text_of(found: list[Section]) -> str:
    """Sections as Markdown."""
    return "\n\n".join(f"### {section.title}\n{section.text}" for section in found)


def clip(text: str, tokens: int) -> str:
    """A text of at most so many tokens: what is too much goes from its middle, and is counted."""
    limit = tokens * CHARACTERS_PER_TOKEN
    if len(text) <= limit:
        return text
    kept = max(limit - len(_gap(len(text))), 0)
    head = kept * 2 // 3
    return text[:head] + _gap(len(text) - kept) + text[len(text) - (kept - head) :]


def _gap(characters: int) -> str:
    return f"\n[... {characters} characters left out ...]\n"


def _times(feedback: Feedback, limits: Mapping[str, float]) -> str:
    lines = []
    if feedback.latency_ns is not None:
        spread = f" ± {feedback.spread:.1%}" if feedback.spread is not None else ""
        lines.append(
            f"Overall: {micros(feedback.latency_ns)}{spread} (geometric mean over the workloads)"
        )
    if feedback.speedups:
        best = feedback.speedups.get("best")
        others = {n: x for n, x in feedback.speedups.items() if n != "best"}
        shown = others if best in others.values() else feedback.speedups
        named = (f"{value:.3g}× {name}" for name, value in shown.items())
        lines.append("Speedup against baselines: " + ", ".join(named))
    lines += [_workload(each, limits.get(each.name)) for each in feedback.workloads]
    return "\n".join(lines)


def _workload(time: WorkloadTime, limit_ns: float | None) -> str:
    shape = ", ".join(f"{name}={value}" for name, value in time.parameters.items())
    noise = (time.high_ns - time.low_ns) / 2 / time.time_ns
    parts = [f"- {time.name} ({shape}): {micros(time.time_ns)} ± {noise:.1%}"]
    if time.baseline_ns is not None:
        parts.append(f"fastest baseline {micros(time.baseline_ns)}")
    if time.floor_ns is not None:
        parts.append(f"limit {_beside(time.time_ns, time.floor_ns)}")
    elif limit_ns:
        parts.append(f"limit {_beside(time.time_ns, limit_ns)}")
    return "; ".join(parts)


def _beside(time_ns: float, limit_ns: float) -> str:
    if limit_ns < _TINY_NS and time_ns > _LATENCY_DECIDES * limit_ns:
        return f"{micros(limit_ns)}, which isn't a target: launches and latency dominate here"
    return f"{micros(limit_ns)}, and the time is {time_ns / limit_ns:.1f}× that"


def micros(time_ns: float) -> str:
    """Microseconds with two decimals; below 0.1 us with three significant digits."""
    return f"{time_ns / 1e3:.2f} us" if time_ns >= 100 else f"{time_ns / 1e3:.3g} us"


def _mismatch(mismatch: Mismatch | None) -> str:
    if mismatch is None:
        return ""
    lines = [f"Workload {mismatch.workload}, output {mismatch.output}: {mismatch.reason}"]
    if mismatch.index and mismatch.bound is not None:
        index = ", ".join(map(str, mismatch.index))
        lines.append(
            f"At index ({index}): expected {_number(mismatch.expected)}, got "
            f"{_number(mismatch.actual)}, allowed difference {_number(mismatch.bound)}"
        )
    if mismatch.elements:
        lines.append(f"{mismatch.wrong_elements} of {mismatch.elements} elements are wrong")
    lines += [f"It looks like this: {finding.text}" for finding in mismatch.findings]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.9g}"


def _compiler(feedback: Feedback) -> str:
    """Resources of each kernel; the log itself where it did not build."""
    if feedback.verdict == "COMPILE_ERROR":
        return each_error_once(feedback.build_log.strip())
    return "\n".join(feedback.resources)


def _profile(feedback: Feedback, mode: ProfileMode, bottleneck: str) -> str:
    if mode is ProfileMode.NONE or not feedback.profile_tool:
        return ""
    lines = [f"Measured with {feedback.profile_tool} on {feedback.profile_workload}"]
    if line := class_line(bottleneck, feedback.profile):
        lines.append(line)
    if mode is ProfileMode.FILTERED and (line := throughput_line(feedback.profile)):
        lines.append(line)
    if line := stall_line(feedback.profile):
        lines.append(line)
    shown = feedback.profile
    if mode is ProfileMode.FILTERED:
        shown = filtered(feedback.profile, bottleneck)
        if shown:
            lines.append(f"Metrics for CUDAMaster's class {bottleneck}:")
    lines += metric_lines(shown)
    if mode is ProfileMode.FULL:
        lines += [*feedback.profile_kernels, *feedback.profile_notes]
    return "\n".join(lines)


def metric_lines(metrics: Mapping[str, float]) -> list[str]:
    """A line each; what is 0 because nobody knows the task's work is left out."""
    unknown = {name for name in _OF_WORK if not metrics.get(name)}
    return [f"- {name}: {value:.5g}" for name, value in metrics.items() if name not in unknown]


MAX_TRIED_TOKENS = 1000
_REASON = 220  # characters of a reason: the first error and its line
_TITLE = 90
_NOTHING = "Nothing other than what is shown here."
_COMPARED = 40
"""Fastest kernels among which the fastest of each workload is looked for."""


def tried_text(history: History, *, besides: Iterable[int] = (), before: int | None = None) -> str:
    """Candidates that failed, or are slower than the best: the newest first, a line each.

    besides: numbers of those that the prompt shows anyway. before: of earlier generations alone, so
    that the order in which a generation's results arrive changes no prompt.
    """
    shown = set(besides)
    correct = [c for c in history.correct() if _is_earlier(c, before)]
    best = correct[-1] if correct else None
    lines: list[str] = []
    room = MAX_TRIED_TOKENS * CHARACTERS_PER_TOKEN
    for candidate in reversed(history.candidates.values()):
        if candidate.number in shown or not _is_earlier(candidate, before):
            continue
        if candidate is best or not _is_lost(candidate):
            continue
        line = f"- {_line(candidate, history, best)}"
        room -= len(line) + 1
        if room < 0:
            lines.append("- earlier ones are left out")
            break
        lines.append(line)
    return "\n".join(lines or [_NOTHING]) + _leaders(history, correct[-_COMPARED:])


def _is_earlier(candidate: Candidate, before: int | None) -> bool:
    return before is None or candidate.place.generation < before


def _leaders(history: History, correct: Iterable[Candidate]) -> str:
    """Which kernel is the fastest on each workload; empty where one is on all of them."""
    fastest: dict[str, tuple[float, int]] = {}
    for candidate in correct:
        feedback = history.details.feedback(candidate.number)
        for each in feedback.workloads if feedback is not None else ():
            found = each.time_ns, candidate.number
            fastest[each.name] = min(fastest.get(each.name, found), found)
    if len({number for _, number in fastest.values()}) < 2:
        return ""
    leaders = (f"{name} {short_us(time)} us (#{by})" for name, (time, by) in fastest.items())
    return f"\n\nFastest on each workload so far: {', '.join(leaders)}."


def _is_lost(candidate: Candidate) -> bool:
    if candidate.state is CandidateState.DROPPED:
        return "same as" not in candidate.reason  # a repeat teaches nothing new
    return candidate.is_told


def _line(candidate: Candidate, history: History, best: Candidate | None) -> str:
    name = f"#{candidate.number} {_short(candidate.title, _TITLE)}".rstrip()
    if candidate.techniques:
        name += f" ({', '.join(candidate.techniques[:3])})"
    if candidate.state is CandidateState.DROPPED:
        return f"{name}: not measured, {_short(candidate.reason, _REASON)}"
    if candidate.latency_ns is None:
        return f"{name}: {candidate.verdict}, {_short(candidate.reason, _REASON)}"
    feedback = history.details.feedback(candidate.number)
    time_ns = (feedback.latency_ns if feedback is not None else None) or candidate.latency_ns
    of = best.latency_ns if best is not None else None
    slower = f", {candidate.latency_ns / of:.2f}× the best one's time" if of else ""
    noise = f" +-{candidate.spread:.0%}" if candidate.spread else ""
    return f"{name}: correct, {time_ns / 1e3:.2f} us{noise}{slower}{by_workload(feedback)}"


def _short(text: str, most: int) -> str:
    """At most so many characters, and no half word where there are several."""
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[:most].rpartition(' ')[0] or words[:most]}..."
