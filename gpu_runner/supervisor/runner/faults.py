"""Why a measured process ends an evaluation: by its author's fault, or by this host's."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_runner.data.verdict import Verdict


@dataclass(frozen=True)
class Fault:
    """Why an evaluation ends without CORRECT: the verdict and a sentence for the author."""

    verdict: Verdict
    reason: str


class FaultError(Exception):
    """Carries a `Fault` of the runner, and what it had printed, up to the evaluation."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault
        self.output = ""


class RunnerUnfit(Exception):
    """The runner itself cannot work on this host; never the author's fault."""
