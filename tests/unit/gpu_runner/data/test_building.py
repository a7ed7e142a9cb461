"""A formula that has no value for any workload is not tried with all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data import formulas
from gpu_runner.data.formulas import evaluate
from tests.unit.gpu_runner.data.test_formats_kbench import SPECIFICATION, refused, write


def test_a_formula_without_a_value_is_tried_with_few_workloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []
    monkeypatch.setattr(formulas, "evaluate", lambda *args: tried.append(args) or evaluate(*args))
    sizes = ", ".join(map(str, range(1, 201)))
    sweep = f"[[sweeps]]\nparameters = {{ N = [{sizes}], C = 1, D = 1 }}\n"
    slow = SPECIFICATION.replace('flops = "N * C"', f'flops = "{"+".join(["N"] * 1500)}"')
    error = refused(write(tmp_path, slow + sweep))
    assert error.field == "work.forward.flops"
    assert "nested too deeply" in error.reason
    assert sum("N+N" in str(args) for args in tried) < 200
