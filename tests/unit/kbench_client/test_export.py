"""A winner's export works without kbench, where it is proven, and says where that is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.verdict import DeviceKind, Language, Verdict
from gpu_runner.supervisor.device.device import device_name
from kbench_client.exits import Exit
from kbench_client.winner import portable
from runs_app.models import Evaluation
from tests import factories as make
from tests.unit.kbench_client.conftest import Run as Command

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site")]

REFERENCE = """
import torch

def make_inputs(N):
    return {"x": torch.randn(N)}

def forward_fn(x, N):
    return x * N
"""
KERNEL = "void scale(float* out, const float* x, int N) { for (int i = 0; i < N; ++i) %s; }"
RIGHT = KERNEL % "out[i] = N * x[i]"
MAIN = """
import importlib.util
from importlib import import_module
from pathlib import Path
import helper
from pack.inner import times as renamed
from . import helper as same

assert same is helper is import_module("helper") is importlib.import_module(".helper", __package__)
assert importlib.import_module("pack.inner").times is renamed
assert importlib.util.find_spec("torch") and import_module("torch.nn").Module
assert Path(__file__).with_name("notes.h").read_text() == "// read"

def forward(x, N):
    import pack.inner
    assert pack.inner.times is renamed
    return helper.scaled(x, N)
"""
BESIDE = {
    "helper.py": "from pack import inner\n\ndef scaled(x, N):\n    return inner.times(x, N) * %d\n",
    "pack/inner.py": "from .deep.most import ONE\n\ndef times(x, N):\n    return N * x * ONE\n",
    "pack/deep/__init__.py": "",
    "pack/deep/most.py": "import torch\n\nONE = torch.ones(())\n",
    "notes.h": "// read",
    "task.py": "raise SystemExit\n",
}
COMMAND = "g++ kernel.cpp -O2 -shared -fPIC -include kbench_declaration.h -o library.so"
SERVER = """
import json, os, sys, traceback
sys.path.append(sys.argv[1])
import torch, torch._dynamo, torch.testing._internal.optests
for line in sys.stdin:
    home, name, code = json.loads(line)
    if os.fork():
        os.wait()
        continue
    os.environ["XDG_CACHE_HOME"] = home
    sys.path.append(home + "/out")
    known = {"name": name, "torch": torch}
    try:
        exec(code, known)
        answer = known["found"]
    except BaseException:
        answer = {"error": traceback.format_exc()}
    print(json.dumps(answer), flush=True)
    os._exit(0)
"""
"""Each export is tried in a fork of this process, which has torch and nothing of kbench."""
ALONE = """
import importlib, importlib.util, io, sys, unittest
package = importlib.import_module(name)
tests = [f"{name}.test_verdict", f"{name}.test_op"]
suite = unittest.defaultTestLoader.loadTestsFromNames(
    [each for each in tests if importlib.util.find_spec(each)])
done = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
found = {
    "kbench": [n for n in ("kbench_client", "gpu_runner") if importlib.util.find_spec(n)],
    "tests": done.testsRun,
    "failed": len(done.failures) + len(done.errors),
    "skipped": [reason for _, reason in done.skipped],
}
"""
CALLED = """
few, many, other = torch.ones(256), torch.ones(4096), torch.ones(300)
x = torch.ones(256, requires_grad=True)
package.forward(x, 256).sum().backward()
found |= {
    "supports": [package.supports(few, 256), package.supports(many, 4096),
                 package.supports(other, 300), package.supports(few, 300),
                 package.supports(few.double(), 256), package.supports(x, 256)],
    "sums": [package.forward(each, N=len(each)).sum().item() for each in (few, many, other)],
    "gradient": x.grad[0].item(),
}
if hasattr(torch.ops.kbench, name):
    operator = getattr(torch.ops.kbench, name)
    found["compiled"] = torch.compile(operator, backend="aot_eager")(few, 256).sum().item()
"""
SUMS = [256.0 * 256, 4096.0 * 4096, 300.0 * 300]


def winner(source: str = RIGHT, *, device: str = "", **given: Any) -> Evaluation:
    """A ranked result that is surely faster on the first of two workloads."""
    overrides = given.pop("task", {"files": {"reference.py": REFERENCE}, "kernels": ()})
    fast, slow = make.make_workload_result(), make.make_measurement(1490.0, spread=0.02)
    result = {
        "environment": Environment(
            device_name=device or device_name(DeviceKind.CPU, 0),
            device_kind=DeviceKind.CPU,
            cpus=len(os.sched_getaffinity(0)),
        ),
        "build": BuildReport(
            ok=True, cached=False, duration_s=1, log="", command=COMMAND, compiler="g++", digest=""
        ),
        "workloads": (
            make.make_workload_result(name="n4096", parameters={"N": 4096}, measurement=slow),
            fast,
            make.make_workload_result(name=make.HIDDEN_WORKLOAD, parameters={}, hidden=True),
        ),
        **given.pop("result", {}),
    }
    version = make.make_task_version(**overrides)
    fields = {"mode": "ranked", "task_version": version, "source": source, **given}
    return make.make_finished_evaluation(result=result, **fields)


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    """See `SERVER`."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    command = [sys.executable, "-I", "-S", "-c", SERVER, str(Path(spec.origin).parents[1])]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process


Alone = Callable[..., dict[str, Any]]


@pytest.fixture
def alone(kbench: Command, home: Path, server: subprocess.Popen[str]) -> Alone:
    """What an exported package does in a process that has torch, and nothing of kbench."""

    def tried(evaluation: Evaluation, target: str, code: str = CALLED) -> dict[str, Any]:
        identity = str(evaluation.submission_id)
        ran = kbench("export", identity, "--to", target, "--out", str(home / "out"), "--json")
        assert ran.status == 0, ran.err
        assert ran.document["faster"] == ["n256"]
        about = next((home / "out").rglob("winner.json")).read_text()
        assert make.HIDDEN_WORKLOAD not in about
        name = Path(ran.document["folder"]).name
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps([str(home), name, ALONE + code]) + "\n")
        server.stdin.flush()
        found = dict(json.loads(server.stdout.readline()))
        assert "error" not in found, found["error"]
        return found

    return tried


def test_an_operator_runs_without_kbench_where_it_is_faster(alone: Alone) -> None:
    """And files beside the source are not taken for it, or for the export's own."""
    files = {"kernel.cpp": "#error", "declaration.h": "#define TIMES(x) N * x", "op.hpp": "#error"}
    source = '#include "declaration.h"\n' + KERNEL % "out[i] = TIMES(x[i])"
    found = alone(winner(source, entry="main.cpp", files=files), "torch")
    assert found["kbench"] == []
    assert (found["tests"], found["failed"], found["skipped"]) == (3, 0, [])
    assert found["supports"] == [True, False, False, False, False, False]
    assert (found["sums"], found["compiled"], found["gradient"]) == (SUMS, SUMS[0], 256.0)


def test_the_contained_test_finds_a_kernel_that_is_wrong(alone: Alone) -> None:
    found = alone(winner(KERNEL % "out[i] = x[i] + N"), "script")
    assert (found["tests"], found["failed"]) == (2, 2)  # of one test, with each of two seeds


def test_another_device_gets_pytorch_and_skips_the_tests(alone: Alone) -> None:
    found = alone(winner(device="A CPU that nobody has"), "torch")
    assert (found["tests"], found["failed"], found["supports"]) == (3, 0, [False] * 6)
    assert found["sums"] == SUMS
    assert ["A CPU that nobody has" in reason for reason in found["skipped"]] == [True, True]


def several(factor: int) -> Evaluation:
    """A winner of several modules, or one that is wrong; no two have another `helper`."""
    files = BESIDE | {"helper.py": BESIDE["helper.py"] % factor}
    return winner(MAIN, language=Language.PYTHON, entry="main.v1.py", files=files)


def test_modules_beside_a_module_are_its_own(kbench: Command, home: Path, alone: Alone) -> None:
    """In a process where another export has a `helper`, and so has the caller."""
    other = kbench("export", str(several(2).submission_id), "--out", str(home / "out"), "--json")
    code = f"""
sys.modules["helper"] = None
wrong = importlib.import_module({Path(other.document["folder"]).name!r})
found["wrong"] = wrong.forward(torch.ones(256), 256).sum().item()
found["seen"] = [each for each in ("pack", "main", "task") if each in sys.modules]
"""
    found = alone(several(1), "torch", CALLED + code)
    assert (found["tests"], found["failed"], found["skipped"]) == (3, 0, [])
    assert (found["supports"][:2], found["sums"]) == ([True, False], SUMS)
    assert (found["wrong"], found["seen"]) == (2 * SUMS[0], [])


def test_what_a_kernel_changes_is_a_copy(alone: Alone) -> None:
    """PyTorch's check of the operator sees it; the name `in` and the header are the task's."""
    task = {
        "signature": "void scale(int N, __nv_bfloat16* in, const float factor = 1.5)",
        "inout": ("in",),
        "dtype": "bfloat16",
        "files": {
            "reference.py": "import torch\n\n"
            "def make_inputs(N):\n    return {'in': torch.randn(N), 'factor': 1.3}\n\n"
            "def forward_fn(in_, factor):\n    return in_ * factor\n"
        },
        "kernels": (),
    }
    source = (
        "void scale(int N, __nv_bfloat16* in, float factor) { for (int i = 0; i < N; ++i)"
        " in[i] = __float2bfloat16(__bfloat162float(in[i]) * factor); }"
    )
    found = alone(winner(source, task=task), "torch", code="")
    assert (found["tests"], found["failed"], found["skipped"]) == (3, 0, [])


def refused(kbench: Command, evaluation: Evaluation, *words: str) -> tuple[int, str]:
    """The exit status, and the field that is named."""
    ran = kbench("export", str(evaluation.submission_id), *words, "--json")
    return ran.status, ran.document["error"]["field"]


def test_only_a_winner_leaves(kbench: Command, home: Path) -> None:
    assert refused(kbench, winner(mode="quick")) == (Exit.MISUSE, "ID")
    wrong = winner(verdict=Verdict.WRONG_RESULT, result={"workloads": ()})
    assert refused(kbench, wrong) == (Exit.OTHER_VERDICT, "ID")
    slow = make.make_workload_result(measurement=make.make_measurement(1490.0, spread=0.02))
    assert refused(kbench, winner(result={"workloads": (slow,)})) == (Exit.TOO_SLOW, "ID")
    good = winner()
    assert refused(kbench, good, "--device", "nvidia-h200") == (Exit.MISUSE, "device")
    assert kbench("export", str(good.submission_id)).status == 0
    assert refused(kbench, good) == (Exit.MISUSE, "out")
    doubt = (Suspicion(check=Check.LUCK, reason="lucky"),)
    assert refused(kbench, winner(result={"suspicions": doubt})) == (Exit.OTHER_VERDICT, "ID")
    later = {"pending_baselines": ("compiled",)}
    assert refused(kbench, winner(result=later)) == (Exit.MISUSE, "ID")
    assert refused(kbench, winner(result={"build": None})) == (Exit.MISUSE, "ID")


def test_a_task_that_nothing_can_stand_in_for_is_refused(kbench: Command) -> None:
    other = REFERENCE.replace("(x, N)", "(x, rows)")
    evaluation = winner(task={"files": {"reference.py": other}, "kernels": ()})
    assert refused(kbench, evaluation) == (Exit.MISUSE, "task")


def test_a_build_is_repeated_without_what_is_of_its_host() -> None:
    command = (
        "/usr/bin/nvcc kernel.cu -std=c++20 -O3 -cudart=shared -Xlinker=-rpath=/usr/local/cuda/lib"
        " -gencode=arch=compute_90a,code=sm_90a -isystem /opt/torch/include -L/opt/torch/lib -lc10"
        " -DTORCH_EXTENSION_NAME=kbench_kernel -include kbench_declaration.h --use_fast_math"
        " -Xlinker=--require-defined=scale -o library.so"
    )
    kept = "-std=c++20 -O3 -cudart=shared -gencode=arch=compute_90a,code=sm_90a --use_fast_math"
    assert portable(command.split()) == kept.split()
