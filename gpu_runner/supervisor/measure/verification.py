"""Compares a process's sampled outputs with the reference, when the process is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpu_runner.data.evaluation import Mismatch, OutputError
from gpu_runner.data.task import Values, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.supervisor.measure.collected import (
    BURSTS,
    SINGLES,
    Collected,
    Verified,
    larger_error,
)
from gpu_runner.supervisor.measure.sampled_outputs import Sample, SampledOutputs
from gpu_runner.supervisor.oracle.client import Oracle, Verification


def verify(
    oracle: Oracle,
    samples: SampledOutputs,
    workload: Workload,
    direction: Direction,
    collected: Collected,
) -> Verified:
    """The errors of what one process returned for a workload, and the first mismatches."""

    def found(
        calls: Sequence[tuple[Workload, int]], reasons: Sequence[Sample]
    ) -> Iterator[tuple[Values, Verification]]:
        """What is found in the calls that were sampled for these reasons, each once.

        What a wrong output looks like is asked of the first of each family of values.
        """
        places = {
            index: (slot, sample)
            for sample in reasons
            for slot, index in collected.sampled.get(sample, {}).items()
        }
        for index, (slot, sample) in sorted(places.items()):
            of, seed = calls[index]
            offsets = samples.offsets(of.name, slot, sample)
            explain = mismatch is None and of.values not in varied
            yield of.values, oracle.verify(of, direction, seed, offsets, explain=explain)

    errors: dict[str, OutputError] = {}
    mismatch: Mismatch | None = None
    varied: dict[Values, Mismatch] = {}
    for reasons, seeds in (
        (SINGLES, collected.seeds),
        (BURSTS, collected.burst_seeds),
        ((Sample.WATCHED,), collected.watched_seeds),
    ):
        for _, each in found([(workload, seed) for seed in seeds], reasons):
            for error in each.errors:
                errors[error.output] = larger_error(errors.get(error.output), error)
            mismatch = mismatch or each.mismatch
    others = [(replace(workload, values=values), seed) for values, seed in collected.varied]
    for values, each in found(others, (Sample.VARIED,)):
        if each.mismatch is not None:
            varied.setdefault(values, each.mismatch)
    return Verified(tuple(errors.values()), mismatch, varied)
