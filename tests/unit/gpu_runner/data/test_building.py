"""All that is wrong with a task on a disk is said when it is read, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data import formulas
from gpu_runner.data.formats.toml_lines import field_lines, line_of
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


def test_errors_are_told_with_their_files_and_lines(tmp_path: Path) -> None:
    folder = write(tmp_path, SPECIFICATION.replace("N = 4096", "M = 4096"))
    (folder / "kernels" / "naive.cpp").write_text("")
    variant = 'title = "Other"\nscenario = "magic"\n'
    (folder / "task_bf16.toml").write_text(variant)
    assert str(refused(folder)).split("\n") == [
        "task.toml, line 20: workloads[1].parameters.N: is missing: work.forward.flops,"
        " work.forward.bytes need it (workload 'large')",
        "kernels/naive.cpp: is listed as a kernel, and is empty",
        "task.toml, line 20: workloads[1].parameters.M: is not a parameter of make_inputs()"
        " (workload 'large')",
    ]
    of_variant = str(refused(folder / "task_bf16.toml")).split("\n")
    assert of_variant[1].startswith("scenario: 'magic' is not one of")
    assert of_variant[2] == "kernels/naive.cpp: is listed as a kernel, and is empty"


TOML = '''# [[workloads]]
"title" = """
[[workloads]]
quotes: "", ""\\""""
name = \'\'\'it\'s\'\'\'
a."b c".d = 1 # = 2
list = [
    1, [2,
    3],
    { x = 1, y = { z = "}]" } },
]
[work]
[work . forward]
bytes = 1979-05-27 07:32:00
[[workloads]]
name = "a"
[workloads.parameters]
N = 1
[[workloads]]
parameters.N = 2
parameters.list = [
    "#",
    2.5]
'''


def test_lines_of_fields() -> None:
    lines = field_lines(TOML)
    expected = {
        "title": 2,
        "name": 5,
        "a.b c.d": 6,
        "list": 7,
        "list[1]": 8,
        "list[1][1]": 9,
        "list[2].y.z": 10,
        "list[2].y.q": 10,
        "work": 12,
        "work.forward.bytes": 14,
        "work.forward.flops": 13,
        "workloads": 15,
        "workloads[0].name": 16,
        "workloads[0].parameters": 17,
        "workloads[0].parameters.N": 18,
        "workloads[1].name": 19,
        "workloads[1].parameters.N": 20,
        "workloads[1].parameters.list[1]": 23,
        "missing": None,
    }
    assert {field: line_of(lines, field) for field in expected} == expected
