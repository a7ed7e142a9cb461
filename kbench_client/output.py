"""What a command prints: its answer on standard output, all else on standard error."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from kbench_client.exits import Stop


@dataclass(frozen=True)
class Output:
    """Prints for people, or with `as_json` one JSON document for programs."""

    as_json: bool = False
    is_quiet: bool = False

    def answer(self, document: object, text: str) -> None:
        """The command's answer, in one of its two forms."""
        words = json.dumps(document, ensure_ascii=False, indent=1) if self.as_json else text
        sys.stdout.write(words + "\n")
        sys.stdout.flush()

    def progress(self, text: str) -> None:
        """A line about what happens meanwhile."""
        if not self.is_quiet:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def warn(self, text: str) -> None:
        """Something that is wrong, and ends nothing."""
        sys.stderr.write(f"kbench: warning: {text}\n")

    def stop(self, error: Stop) -> int:
        """Why the command ends; returns its exit status."""
        sys.stderr.write(f"kbench: {error}\n")
        if self.as_json:
            problem: dict[str, object] = {"field": error.field, "reason": error.reason}
            problem["exit"] = int(error.status)
            if error.retry_s:
                problem["retry_s"] = error.retry_s
            if error.also:
                problem["also"] = [{"field": name, "reason": why} for name, why in error.also]
            sys.stdout.write(json.dumps({"error": problem}) + "\n")
        return int(error.status)
