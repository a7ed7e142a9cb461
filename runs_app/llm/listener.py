"""Tells a caller how far an answer has come, and no more often than it needs to know."""

from __future__ import annotations

from collections.abc import Callable

from runs_app.llm.reading import Answer

PROGRESS_EVERY_S = 0.5

Progress = Callable[[str], object]


class Listener:
    """Hears of each piece of an answer; passes the text on at most twice a second."""

    def __init__(self, on_progress: Progress | None, clock: Callable[[], float]) -> None:
        """Start the clock of this attempt."""
        self._on_progress = on_progress
        self._clock = clock
        self._told_at: float | None = None
        self.started_at = clock()
        self.first_token_s: float | None = None

    def hear(self, answer: Answer) -> None:
        """A piece came; raises what the caller's function raises."""
        now = self._clock()
        if self.first_token_s is None:
            self.first_token_s = now - self.started_at
        due = self._told_at is None or now - self._told_at >= PROGRESS_EVERY_S
        if due and self._on_progress is not None:
            self._told_at = now
            self._on_progress(answer.text)
