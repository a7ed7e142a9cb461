"""Markdown tables and the heading that every figure needs: date, device, versions."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from gpu_runner.supervisor.device.environment import environment
from gpu_runner.supervisor.host.config import SupervisorConfig


def heading(config: SupervisorConfig) -> str:
    """One line that says when and on what the figures were measured."""
    found = environment(config)
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    names = ("device_name", "driver", "compiler", "torch", "jail", "cpus")
    parts = [f"{name} {getattr(found, name)}" for name in names if getattr(found, name)]
    return f"{day}; " + "; ".join(parts)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that at least `share` of them do not exceed (nearest rank)."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
