"""What runs and waits on a device, as a bar."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_app import drawings


@dataclass(frozen=True)
class Bar:
    """A load as a stacked bar, and in words."""

    parts: list[drawings.Part]
    words: str


def load_bar(running: int, people: int, behind: int, whole: int = 0) -> Bar:
    """What runs, and what waits of people and behind them, as a bar."""
    counts = {
        ("running", f"{running} running"): running,
        ("people", f"{people} of people waiting"): people,
        ("behind", f"{behind} behind them"): behind,
    }
    said = ", ".join(label for (_, label), count in counts.items() if count)
    return Bar(drawings.stack(counts, whole=whole), said or "nothing")
