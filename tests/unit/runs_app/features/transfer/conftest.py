"""Fixtures of runs that need no Redis, endpoint or runner."""

from __future__ import annotations

from tests.unit.runs_app.optimiser.conftest import model, start, world

__all__ = ["model", "start", "world"]
