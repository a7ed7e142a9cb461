"""Whether all pages, cards and answers of a site say the same of a result, and none is too sure.

    python -m tests.bench.agreement http://127.0.0.1:8000 [--minutes 10] [--device cpu]

Looks every five seconds at everything that shows a result of a board. Exit status 1 if two places
disagree on where a result stands or on its score, or if something provisional is colored, headlined
or called a record. What changes between two looks at it is looked at once more.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

_PAUSE_S, _PATIENCE_S = 5.0, 30.0
_LABELS = {
    "provisional": ("Provisional", "Eager only"), "ranked": ("Ranked",), "verified": ("Verified",),
    "tuned": ("Tuned to the listed sizes",), "quarantined": ("In quarantine",),
    "rejected": ("Rejected",),
}  # fmt: skip
_UNSURE = ("provisional", "quarantined", "rejected")
_RECORD = re.compile(
    r"Record of the day(?:(?!</section>).)*?/submissions/([0-9a-f-]{36})/", re.DOTALL
)


_ROW = re.compile(
    r"<(tr|li|p)\b(?:(?!</?\1\b).)*?/submissions/([0-9a-f-]{36})/(?:\?evaluation=([0-9a-f-]{36}))?"
    r"(?:(?!</?\1\b).)*",
    re.DOTALL,
)
_CHIP = re.compile(rf">({'|'.join(chain(*_LABELS.values()))})</button>")
_COLORED = re.compile(r'class="speedup (?:faster|slower)"[^>]*title="([^"]*)')


@dataclass(frozen=True)
class Site:
    """A site, asked as a visitor."""

    address: str

    def text(self, path: str) -> str:
        """The answer at a path."""
        request = urllib.request.Request(self.address + path, headers={"Accept": "*/*"})
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
            return str(answer.read().decode())

    def rows(self, device: str) -> list[Mapping[str, Any]]:
        """The entries of the device's boards."""
        found = json.loads(self.text(f"/api/v1/leaderboard?by=submission&device={device}"))
        rows: list[Mapping[str, Any]] = found["rows"]
        return rows


def disagreements(site: Site, row: Mapping[str, Any]) -> Iterator[str]:
    """What other places say otherwise of an entry of a board."""
    address = f"/submissions/{row['submission_id']}/"
    state, labels = row["state"], _LABELS[row["state"]]
    document = json.loads(site.text(f"/api/v1/submissions/{row['submission_id']}"))
    same = [e for e in document["evaluations"] if e["id"] == row["evaluation_id"]]
    if not same:
        yield f"{address}: the API lacks its evaluation"
        return
    said = same[0]
    if (said["state"], said["score"]) != (state, row["score"]):
        yield f"{address}: the API says {said['state']}, {said['score']}"
    of_one = f"?evaluation={row['evaluation_id']}"
    page, badge = site.text(address + of_one), site.text(f"{address}badge.svg{of_one}")
    if not any(f">{label}</button>" in page for label in labels):
        yield f"{address}: the page has no chip {labels[0]!r}"
    if not any(label.lower() in badge for label in labels):
        yield f"{address}: the badge does not say {labels[0].lower()!r}"
    if state in _UNSURE and 'class="verdict-said neutral"' not in page:
        yield f"{address}: the page is sure of what is {state}"


def too_sure(site: Site, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Whether the first page calls something a record that is not sure."""
    record = _RECORD.search(site.text("/"))
    row = rows.get(record[1]) if record else None
    if row is not None and row["state"] in _UNSURE:
        yield f"/: {row['task']} is {row['state']}, and the record"


def listed(site: Site, device: str, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What pages with many results say otherwise, or too surely, of entries of boards."""
    of_evaluation = {row["evaluation_id"]: row for row in rows.values()}
    tasks = sorted({row["task"] for row in rows.values()})
    boards = [f"/leaderboard/?device={device}{by}" for by in ("", "&by=submission", "&by=agent")]
    for path in ("/", *boards, *(f"/tasks/{task}/" for task in tasks)):
        for found in _ROW.finditer(site.text(path)):
            row = of_evaluation.get(found[3]) if found[3] else rows.get(found[2])
            if row is None:
                continue
            where, state = f"{path}: {row['task']} {found[2]}", row["state"]
            chip, colored = _CHIP.search(found[0]), _COLORED.search(found[0])
            if chip and chip[1] not in _LABELS[state]:
                yield f"{where} is {state}, and has a chip {chip[1]!r}"
            if colored and state in _UNSURE:
                yield f"{where} is {state}, and colored: {colored[1]!r}"


def feed(site: Site, device: str, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What the board's feed says otherwise."""
    entries = site.text(f"/feeds/boards/{device}.atom").split("<entry>")[1:]
    for row in rows.values():
        entry = next((text for text in entries if row["evaluation_id"] in text), None)
        said = [f", {label.lower()}<" for label in _LABELS[row["state"]]]
        if entry is not None and not any(words in entry for words in said):
            yield f"the feed does not say that {row['evaluation_id']} is {row['state']}"


def look(site: Site, device: str) -> list[str]:
    """All that is wrong now."""
    rows = {row["submission_id"]: row for row in site.rows(device)}
    found = [*too_sure(site, rows), *listed(site, device, rows), *feed(site, device, rows)]
    for row in rows.values():
        found += disagreements(site, row)
    return found


def main() -> int:
    """Look until the time is over, and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    site, looks, wrong = Site(options.address.rstrip("/")), 0, 0
    seen: dict[str, int] = {}
    deadline = time.monotonic() + 60 * options.minutes
    while time.monotonic() < deadline:
        looks += 1
        if first := look(site, options.device):
            for text in sorted(set(first) & set(look(site, options.device))):
                wrong += 1
                print(text, flush=True)
        for row in site.rows(options.device):
            seen[row["state"]] = seen.get(row["state"], 0) + 1
        time.sleep(_PAUSE_S)
    states = ", ".join(f"{name} {count}" for name, count in sorted(seen.items()))
    print(f"{looks} looks, {wrong} disagreements; entries seen: {states or 'none'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
