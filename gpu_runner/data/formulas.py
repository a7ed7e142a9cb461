"""Formulas of a task, and whether they or single workloads are wrong where they have no value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_runner.data.codec import DataError
from gpu_runner.data.expression import evaluate, names_in

Parameters = Mapping[str, Any]
_TRIED = 32  # workloads with which a formula has no value


@dataclass(frozen=True, kw_only=True)
class Formula:
    """An expression over a workload's parameters, and over constants which those may hide.

    field: dotted path of the expression in the task.
    """

    field: str
    expression: str
    constants: Mapping[str, int]

    def value(self, parameters: Parameters) -> float:
        """Its value for a workload; raises `DataError` naming its field."""
        return evaluate(self.expression, {**self.constants, **parameters}, self.field)

    def lacks(self, parameters: Parameters) -> list[str]:
        """Names in it that are no numbers among the parameters."""
        values = {**self.constants, **parameters}
        names = names_in(self.expression)
        return [name for name in names if not isinstance(values.get(name), int | float)]


def formula_errors(
    formulas: Sequence[Formula], workloads: Sequence[tuple[str, Parameters]]
) -> Iterator[DataError]:
    """What is wrong with the formulas, and then what is wrong with single workloads.

    A formula is wrong where no workload has one of its names as a number, or where it has a value
    for none of them. Elsewhere it is the workloads that are, by their place in `workloads`, which
    are pairs of name and parameters.
    """
    apart = [_Lacking() for _ in workloads]
    for formula in formulas:
        lacks = [formula.lacks(parameters) for _, parameters in workloads]
        common = set.intersection(*map(set, lacks)) if lacks else set()
        for name in sorted(common):
            reason = f"needs {name!r}, which no workload has as a number: {formula.expression!r}"
            yield DataError(formula.field, reason)
        for index, names in enumerate(lacks):
            apart[index].need(formula.field, [name for name in names if name not in common])
        those = [index for index, names in enumerate(lacks) if not names]
        failed, is_everywhere = _failures(formula, [workloads[index][1] for index in those])
        if is_everywhere and len(those) == len(workloads):
            reason = f"{failed[0]}, for the workload {workloads[0][0]!r}"
            yield DataError(formula.field, reason)
        else:
            for place, reason in failed.items():
                apart[those[place]].refuse(formula.field, reason)
    for index, (_, parameters) in enumerate(workloads):
        yield from apart[index].errors(f"workloads[{index}].parameters", parameters)


def _failures(formula: Formula, workloads: Sequence[Parameters]) -> tuple[dict[int, str], bool]:
    """Why the formula has no value, by the places of the first workloads that give it none.

    And whether it has one for no workload, as far as that was tried: an expression may take long.
    """
    failed: dict[int, str] = {}
    for index, parameters in enumerate(workloads):
        try:
            formula.value(parameters)
        except DataError as error:
            failed[index] = error.reason
            if len(failed) == _TRIED:
                return failed, index + 1 == _TRIED
    return failed, bool(failed) and len(failed) == len(workloads)


class _Lacking:
    """What formulas miss in one workload."""

    def __init__(self) -> None:
        self._needed: dict[str, list[str]] = {}  # fields of formulas by a parameter's name
        self._reasons: list[str] = []

    def need(self, formula: str, names: Sequence[str]) -> None:
        """One formula lacks parameters of these names."""
        for name in names:
            self._needed.setdefault(name, []).append(formula)

    def refuse(self, formula: str, reason: str) -> None:
        """One formula has no value although it has its parameters."""
        self._reasons.append(f"give {formula} no value: {reason}")

    def errors(self, field: str, parameters: Parameters) -> Iterator[DataError]:
        for name, formulas in self._needed.items():
            what = "is no number" if name in parameters else "is missing"
            verb = "needs" if len(formulas) == 1 else "need"
            yield DataError(f"{field}.{name}", f"{what}: {', '.join(formulas)} {verb} it")
        for reason in self._reasons:
            yield DataError(field, reason)
