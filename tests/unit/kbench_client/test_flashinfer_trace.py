"""Solutions of FlashInfer Trace come in as kernels, and results leave as its traces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_runner.data.evaluation import Mismatch, OutputError
from gpu_runner.data.formats import read_task
from gpu_runner.data.verdict import Verdict
from kbench_client.exits import Stop
from kbench_client.solutions import read_solution
from runs_app.models import Submission
from tasks_app.models import TaskVersion
from tasks_app.publishing.services import publish
from tests import factories as make
from tests import trace_files as files
from tests.unit.kbench_client.conftest import Run as Command

pytestmark = [pytest.mark.django_db]
IN_PLACE = "def run(x, rows, alpha, out):\n    out.copy_(x[rows.long()] * alpha)\n"
RETURNS = "def run(x, rows, alpha):\n    return x[rows.long()] * alpha\n"
NESTED = [{"path": "in/a.py"}, {"path": "b.h"}]
COMPILED = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }  // """'


@pytest.fixture
def version(tmp_path: Path) -> TaskVersion:
    """A published task of the small definition."""
    document = files.definition(constraints=[])
    file = files.write_data_set(tmp_path / "set", document, [files.workload("u1")])
    return publish(data=read_task(file).task, now=make.NOW).version


def _write(folder: Path, document: Mapping[str, Any], name: str = "one.json") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(document))
    return folder / name


@pytest.mark.parametrize(
    ("source", "spec"),
    [(IN_PLACE, {}), (RETURNS, {"destination_passing_style": False, "languages": ["pytorch"]})],
)
@pytest.mark.usefixtures("ada")
def test_a_solution_is_entered_and_called_as_it_wants(
    kbench: Command, version: TaskVersion, home: Path, source: str, spec: dict[str, Any]
) -> None:
    _write(home / "mine", files.solution(source, **spec))
    _write(home / "mine", files.definition(), "definition.json")
    ran = kbench("import", str(home / "mine"), "--json")
    assert (ran.status, [row["task"] for row in ran.document]) == (0, ["take_rows_w4"])
    submission = Submission.objects.get()
    assert (submission.agent.name, submission.language) == ("ada-agent", "python")
    module: dict[str, Any] = {}
    exec(submission.source, module)
    x = torch.arange(8.0).view(2, 4).bfloat16()
    out = module["forward"](x, torch.tensor([1], dtype=torch.int32), 0.5)
    assert (out.dtype, out.tolist()) == (torch.bfloat16, [[2.0, 2.5, 3.0, 3.5]])


def test_compiled_solutions_bring_their_own_binding(version: TaskVersion, tmp_path: Path) -> None:
    options = {"cflags": ["-O3"]}
    spec = {"language": "cpp", "binding": "torch", "compile_options": options}
    found = read_solution(_write(tmp_path, files.solution(COMPILED, "main.cpp", **spec)))
    task = {"name": "t", "document": {"format": "flashinfer-trace", "files": version.data.files}}
    source = found.kernel(task).source
    module: dict[str, Any] = {}
    stub = "def load_inline(name, **given): return given\n"
    exec(source.replace("from torch.utils.cpp_extension import load_inline", stub), module)
    assert module["_solution"] == {"cpp_sources": [COMPILED], "extra_cflags": ["-O3"]}


@pytest.mark.usefixtures("ada")
def test_a_solution_of_several_files_is_entered_whole(
    kbench: Command, version: TaskVersion, home: Path
) -> None:
    helper = {"path": "rows.py", "content": "def taken(x, rows):\n    return x[rows.long()]\n"}
    main = "from rows import taken\ndef run(x, rows, alpha, out):\n    out.copy_(taken(x, rows))\n"
    given = files.solution(main)
    _write(home / "mine", given | {"sources": [helper, *given["sources"]]})
    ran = kbench("import", str(home / "mine"), "--json")
    assert ran.status == 0, ran.err
    submission = Submission.objects.get()
    assert submission.entry == given["sources"][0]["path"]
    assert submission.files == {"rows.py": helper["content"]}
    assert "def forward(" in submission.source


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (files.solution("", language="cuda"), "spec.binding"),
        (files.solution("", entry_point="other.py::run"), "spec.entry_point"),
        (files.solution("def other(): ..."), "spec.entry_point"),
        (files.solution(RETURNS + "def forward(): ...\n"), "sources[0].content"),
        (
            files.solution("", language="cuda", binding="torch", dependencies=["cudnn"]),
            "spec.dependencies",
        ),
        (files.solution("") | {"sources": []}, "sources"),
        (files.solution("", entry_point="in/a.py::run") | {"sources": NESTED}, "spec.entry_point"),
    ],
)
def test_a_refusal_names_the_field(tmp_path: Path, document: dict[str, Any], field: str) -> None:
    with pytest.raises(Stop) as caught:
        read_solution(_write(tmp_path, document))
    assert caught.value.field == field


def _finished(version: TaskVersion, verdict: Verdict, user: Any, **result: Any) -> str:
    workload, *_ = version.data.workloads
    errors = (OutputError(output="output", scaled=0.2, relative=0.1, absolute=0.5, pointwise=0.25),)
    measured = {} if verdict is Verdict.CORRECT else {"measurement": None, "baselines": {}}
    measured |= {"name": workload.name, "parameters": workload.parameters, "errors": errors}
    rows = (make.make_workload_result(**measured),)
    evaluation = make.make_finished_evaluation(
        verdict,
        {"workloads": rows, **result},
        user=user,
        mode="ranked",
        task_version=version,
        language="python",
        source="def forward(x, rows, alpha): ...\n",
    )
    return str(evaluation.submission_id)


def test_a_result_leaves_as_traces(
    kbench: Command, ada: Any, version: TaskVersion, home: Path
) -> None:
    identity = _finished(version, Verdict.CORRECT, ada)
    (trace,) = kbench("trace", identity, "--json").document
    assert trace["definition"] == "Take-rows_w4"
    assert trace["workload"] == files.workload("u1")
    told = trace["evaluation"]
    assert told["status"] == "PASSED"
    assert (told["performance"]["latency_ms"], told["performance"]["speedup_factor"]) == (1e-3, 2.0)
    found = told["correctness"]
    assert (found["max_absolute_error"], found["max_relative_error"]) == (0.5, 0.25)
    assert kbench("trace", identity, "--to", str(home / "out")).status == 0
    names = {path.relative_to(home / "out").parts[0] for path in (home / "out").rglob("*.json*")}
    assert names == {"definitions", "solutions", "traces"}
    exported = kbench(
        "export", identity, "--to", "flashinfer", "--out", str(home / "won"), "--json"
    )
    assert exported.status == 0, exported.err
    assert {Path(name).parts[0] for name in exported.document["files"]} == names


def test_a_wrong_result_tells_of_its_workload_alone(
    kbench: Command, ada: Any, version: TaskVersion
) -> None:
    name = version.data.workloads[0].name
    mismatch = Mismatch(workload=name, output="output", reason="off by 1")
    wrong = _finished(version, Verdict.WRONG_RESULT, ada, mismatch=mismatch)
    broken = _finished(version, Verdict.COMPILE_ERROR, ada)
    told = kbench("trace", wrong, broken, "--json").document
    assert [each["evaluation"]["status"] for each in told] == [
        "INCORRECT_NUMERICAL",
        "COMPILE_ERROR",
    ]
    assert "performance" not in told[0]["evaluation"]
    assert "as a whole" in told[1]["evaluation"]["log"]
    assert kbench("trace", _finished(version, Verdict.SYSTEM_ERROR, ada)).status == 2


def test_the_released_package_takes_what_leaves_and_what_tests_read(
    kbench: Command, ada: Any, version: TaskVersion, home: Path
) -> None:
    released = pytest.importorskip("flashinfer_bench.data", reason="flashinfer-bench is not here")
    wrong = Mismatch(workload=version.data.workloads[0].name, output="output", reason="off")
    identities = (
        _finished(version, Verdict.CORRECT, ada),
        _finished(version, Verdict.WRONG_RESULT, ada, mismatch=wrong),
        _finished(version, Verdict.TIME_LIMIT, ada),
    )
    assert kbench("trace", *identities, "--to", str(home / "out")).status == 0
    found = released.TraceSet.from_path(str(home / "out"))
    assert (found.summary()["passed"], found.summary()["total"]) == (1, 3)
    assert len(found.solutions["Take-rows_w4"]) == 3
    assert found.get_best_trace("Take-rows_w4", max_abs_error=1, max_rel_error=1) is not None
    released.Definition.model_validate(files.definition())
    released.Workload.model_validate(files.workload("u1"))
    released.Solution.model_validate(files.solution(IN_PLACE))
