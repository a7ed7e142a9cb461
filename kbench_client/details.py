"""What an author needs beside a result's times: compiler messages, mismatches, and the profile.

Each part is short, so that an agent can read all of it: the site keeps the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kbench_client.results import (
    missing_lines,
    significant,
    standing_line,
    verdict_line,
    workload_table,
)

Document = dict[str, Any]

SHORT_ID = 8
"""Characters of an ID that are enough, as a rule."""
FILES_BYTES = 7_500  # chosen: an answer with names and quotes around them stays below 8 KB
_FINDINGS = 5  # chosen: the first ones explain the rest
_OTHERS = 8  # chosen: evaluations beside the one that is shown
_LINE = 300  # characters of a line or a sentence
_CUTS = (
    *(("profile.kernels", 2), ("profile.notes", 6), ("build.log", 1_500), ("output", 600)),
    *(("workloads.parameters", 0), ("workloads.baselines", 0), ("profile.kernels", 1)),
    *(("profile.kernels.metrics", 0), ("profile.metrics", 0), ("workloads", 12)),
)
"""What is left out of a result that is too long, in this order, and how much of it is kept."""
_FEW = (
    *("id", "device", "mode", "status", "verdict", "latency_ns", "score", "speedup"),
    *("compared_with", "state", "place", "eligibility", "quarantine", "created_at"),
)
"""What is told of evaluations other than the one that is shown."""


def details(evaluation: Document) -> Document:
    """The parts that a result has, each short: log, mismatch, suspicions, profile and so on."""
    result = evaluation.get("result") or {}
    build = result.get("build") or {}
    is_correct = evaluation.get("verdict") == "CORRECT"  # then nobody needs to fix a warning
    found = {
        "log": "" if is_correct else build.get("log") or "",
        "mismatch": _mismatch(result.get("mismatch") or {}),
        "suspicions": [
            {name: each[name] for name in ("check", "reason", "line") if each.get(name)}
            for each in result.get("suspicions", ())[:_FINDINGS]
        ],
        "output": "" if is_correct else result.get("output") or "",
        "bottleneck": evaluation.get("bottleneck", ""),
        "profile": _profile(result.get("profile") or {}),
    }
    return {name: value for name, value in found.items() if value}


def summary(evaluation: Document) -> str:
    """A result for people and agents: verdict, workloads, whether it counts, and the details."""
    parts = (
        *(verdict_line(evaluation), workload_table(evaluation)),
        *(missing_lines(evaluation), standing_line(evaluation)),
        detail_lines(details(evaluation), evaluation["reason"]),
    )
    return "\n".join(filter(None, parts))


def brief(submission: Document, shown: Document) -> Document:
    """A submission without its source, and with the result of one of its evaluations alone.

    If it is still too long to read, the ends of its longest parts are left out, too.
    """
    result = shown.get("result")
    if result:
        short = details(shown)
        build = {**(result.get("build") or {}), "log": short.get("log")}
        result = told({**result, "build": build, "profile": short.get("profile")})
    others = [
        {name: each[name] for name in _FEW if name in each}
        for each in submission["evaluations"]
        if each["id"] != shown["id"]
    ]
    kept = {name: value for name, value in submission.items() if name not in ("source", "files")}
    left_out = ["source", "results of other evaluations", *submission.get("left_out", ())]
    whole = kept | {"evaluations": [{**shown, "result": result}, *others], "left_out": left_out}
    if len(others) > _OTHERS:
        whole["evaluations"] = [{**shown, "result": result}, *others[:_OTHERS]]
        left_out.append("older evaluations")
    for place, most in _CUTS:
        if len(json.dumps(whole, ensure_ascii=False, indent=1).encode()) <= FILES_BYTES:
            break
        if result and _cut(result, *place.split("."), most=most):
            left_out.append(place)
    return whole


def _cut(part: Document, *path: str, most: int) -> bool:
    """Keep the start of a list or a text, or nothing; whether that left anything out."""
    name, *rest = path
    if rest:
        inner = part.get(name) or []
        parts = inner if isinstance(inner, list) else [inner]
        done = [_cut(each, *rest, most=most) for each in parts]
        return any(done)
    whole = part.get(name)
    if not whole or (most and len(whole) <= most):
        return False
    if most:
        part[name] = whole[:most]
    else:
        del part[name]
    return True


def brief_files(files: Mapping[str, str]) -> dict[str, str]:
    """The files, in this order, that fit into an answer; it names the others."""
    kept: dict[str, str] = {}
    for name, text in files.items():
        if len(json.dumps(kept | {name: text})) <= FILES_BYTES:
            kept[name] = text
    others = [name for name in files if name not in kept]
    left_out = f"{', '.join(others)}, to keep the answer short; raw=true includes all"
    return kept | ({"left_out": left_out} if others else {})


def told(value: Any) -> Any:
    """The same without what says nothing: null, and empty texts and lists."""
    if isinstance(value, dict):
        kept = {name: told(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in (None, "", [], {})}
    return [told(each) for each in value] if isinstance(value, list) else value


def detail_lines(found: Document, reason: str = "") -> str:
    """The same for people, without what the reason says already."""
    parts = [
        *([f"compiler:\n{_indented(found['log'])}"] if "log" in found else ()),
        *([_mismatch_lines(found["mismatch"], reason)] if "mismatch" in found else ()),
        *([f"printed:\n{_indented(found['output'])}"] if "output" in found else ()),
        *([_profile_lines(found)] if "profile" in found else ()),
    ]
    return "\n".join(filter(None, parts))


def _mismatch(mismatch: Document) -> Document:
    """The first wrong element, and what the whole output looks like."""
    kept = {
        name: mismatch[name]
        for name in ("workload", "output", "index", "expected", "actual", "bound")
        if mismatch.get(name) not in (None, [], "")
    }
    counts = {name: mismatch[name] for name in ("wrong_elements", "elements") if mismatch.get(name)}
    said = [each["text"][:_LINE] for each in mismatch.get("findings", ())[:_FINDINGS]]
    return kept | counts | ({"findings": said} if said else {})


def _mismatch_lines(mismatch: Document, reason: str) -> str:
    place = f"{mismatch.get('output', 'output')}{list(mismatch.get('index', ()))}"
    lines = []
    if "expected" in mismatch:
        bound = f", off by more than {mismatch['bound']:.3g}" if "bound" in mismatch else ""
        lines.append(
            f"first wrong: {place} of {mismatch.get('workload', 'a workload')}: expected"
            f" {_number(mismatch['expected'])}, got {_number(mismatch.get('actual'))}{bound}"
        )
    if "wrong_elements" in mismatch and "elements" in mismatch:
        lines.append(f"wrong elements: {mismatch['wrong_elements']} of {mismatch['elements']}")
    findings = (text for text in mismatch.get("findings", ()) if text not in reason)
    lines += [f"it looks like: {text}" for text in findings]
    return "\n".join(lines)


def _number(value: object) -> str:
    """JSON has no NaN and no infinities, so the API gives their names."""
    return f"{value:.7g}" if isinstance(value, int | float) else str(value or "nan")


def _profile(profile: Document) -> Document:
    if not profile:
        return {}
    kernels = [
        {"name": each["name"][:_LINE], "duration_ns": each.get("duration_ns")}
        | {"metrics": _rounded(each.get("metrics") or {})}
        for each in profile.get("kernels", ())
    ]
    return {
        "workload": profile["workload"],
        "tool": profile["tool"],
        "reason": profile["reason"],
        "causes": list(profile.get("causes", ())),
        "notes": [note[:_LINE] for note in profile["notes"]],
        "metrics": _rounded(profile["metrics"]),
        "kernels": kernels,
    }


def _profile_lines(found: Document) -> str:
    profile = found["profile"]
    heading = f"profile of {profile['workload']}"
    if found.get("bottleneck"):
        heading += f": {found['bottleneck']}"
    lines = [heading, *(f"  cause: {cause}" for cause in profile["causes"])]
    lines += [f"  {text}" for text in _shares(profile["metrics"])]
    lines += [f"  {note}" for note in profile["notes"]]
    for each in profile["kernels"]:
        lines.append(f"  kernel {each['name']}: {', '.join(_shares(each['metrics']))}")
    return "\n".join(lines)


def _shares(metrics: Mapping[str, float]) -> Iterator[str]:
    """The throughputs in a line, if there are any."""
    names = ("compute", "dram", "memory")
    known = [
        f"{name} {significant(metrics[key])} %"
        for name in names
        if (key := f"{name}_throughput_pct") in metrics
    ]
    if known:
        yield f"of the device's peak: {', '.join(known)}"


def _rounded(metrics: Mapping[str, float]) -> dict[str, float]:
    """Three digits, as pages show."""
    return {name: float(f"{value:.3g}") for name, value in metrics.items()}


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
