"""The command line runs the whole protocol without a site or Redis, and keeps its exit status."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gpu_runner import __main__ as command_line
from gpu_runner.__main__ import main
from gpu_runner.data.codec import SCHEMA_VERSION, decode, encode
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import catalog_folder, catalog_specifications, load_task
from gpu_runner.data.formats.kbench import read_kbench
from gpu_runner.data.verdict import Mode, Stage, Verdict
from gpu_runner.supervisor.device.device import cuda_devices
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.faults import RunnerUnfit
from gpu_runner.supervisor.runner.pool import Oracles
from gpu_runner.supervisor.tools.peaks import KnownPeak
from tests.protocol.evaluating import evaluated, needs_jail, only

SOFTMAX = catalog_folder() / "softmax" / "kernels"


EVERY = 8
"""Of the naive kernels one in so many; tests of the catalogue call all, without the protocol."""


def shipped() -> list[Any]:
    """Some of both; the rest of the tuned ones is `thorough`."""
    documents = {name: read_kbench(path) for name, path in catalog_specifications().items()}
    kernels = [
        (name, kernel)
        for name, document in documents.items()
        for kernel in document.get("kernels", ())
        if document.get("abi", "c") == "c" and kernel["language"] == "cpp"
    ]
    naive = [(name, k["path"]) for name, k in kernels if k["agent"] == "kbench-naive"]
    tuned = [(name, k["path"]) for name, k in kernels if k["agent"] != "kbench-naive"]
    rest = [
        pytest.param(*each, marks=pytest.mark.thorough) for each in tuned if each not in tuned[::4]
    ]
    return [*naive[::EVERY], *tuned[::4], *rest]


SOFTMAX_GOOD = ["--task", "softmax", "--kernel", str(SOFTMAX / "good.cpp"), "--device", "cpu"]


@pytest.fixture
def cache(config: SupervisorConfig) -> Path:
    return config.cache_folder


def evaluate(*arguments: str, cache: Path) -> int:
    try:
        return main(["evaluate", "--cache", str(cache), *arguments])
    except SystemExit as stop:  # argparse's own
        return int(stop.code or 0)


@pytest.mark.sampled(4)
@needs_jail
@pytest.mark.parametrize(("name", "path"), shipped())
def test_shipped_kernel_is_correct(
    name: str, path: str, config: SupervisorConfig, oracles: Oracles
) -> None:
    task = load_task(catalog_specifications()[name])
    result = evaluated(config, task, task.files[path], oracles=oracles)
    assert result.verdict is Verdict.CORRECT, result.reason


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import triton\n", "k.py is for a GPU: it imports triton. This host has no GPU."),
        ("import torch\nx = torch.zeros(3, device='cuda')\n", "it names the device 'cuda'"),
    ],
)
def test_a_module_for_a_gpu_is_not_tried_without_one(
    text: str, words: str, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(command_line, "cuda_devices", list)
    kernel = tmp_path / "k.py"
    kernel.write_text(text)
    assert evaluate("--task", "vector_add", "--kernel", str(kernel), cache=cache) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "pass --device cpu" in told


@needs_jail
@pytest.mark.skipif(bool(cuda_devices()), reason="this host has a GPU")
@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")
def test_what_is_only_compiled_needs_no_gpu(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--task", "softmax", "--kernel", str(SOFTMAX / "naive.cu")]
    status, result = told(cache, tmp_path, *arguments, "--mode", "compile")
    assert (status, result.verdict) == (0, Verdict.COMPILED)
    assert result.environment.device_name == "no GPU"
    assert evaluate(*arguments, "--mode", "quick", cache=cache) == 2
    assert "no CUDA device 0" in capsys.readouterr().err


def test_a_module_for_a_gpu_goes_to_one_that_this_host_has(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[EvaluationRequest] = []

    def stop(request: EvaluationRequest, _: SupervisorConfig) -> EvaluationResult:
        asked.append(request)
        raise OSError("asked")

    monkeypatch.setattr(command_line, "cuda_devices", lambda: [0])
    monkeypatch.setattr(command_line, "device_slug", lambda kind, index: f"{kind}-{index}")
    monkeypatch.setattr(command_line, "evaluate", stop)
    for text, device in (("import triton\n", "cuda-0"), ("import torch\n", "cpu-0")):
        (tmp_path / "k.py").write_text(text)
        kernel = str(tmp_path / "k.py")
        assert evaluate("--task", "vector_add", "--kernel", kernel, cache=cache) == 2
        assert asked[-1].device == device


def told(cache: Path, folder: Path, *arguments: str) -> tuple[int, EvaluationResult]:
    """Exit status and document."""
    out = folder / "result.json"
    status = evaluate(*arguments, "--json", str(out), cache=cache)
    return status, decode(EvaluationResult, json.loads(out.read_text()))


@needs_jail
def test_result_is_complete_enough_to_redo_the_statistics(cache: Path, tmp_path: Path) -> None:
    status, result = told(cache, tmp_path, *SOFTMAX_GOOD)
    assert (status, result.verdict) == (0, Verdict.CORRECT), result.reason
    assert result.schema_version == SCHEMA_VERSION
    for workload in result.workloads:
        assert workload.measurement is not None
        assert workload.errors
        assert workload.outside is not None
        assert workload.outside.idle_ns is not None
        assert 500 < workload.outside.idle_ns < 200_000  # what stopping a waiting thread costs here
        assert None not in (workload.outside.null_spread_ns, workload.outside.cpu_ns)
        calls = sum(len(run.times_ns) for run in workload.processes)
        assert calls / 2 < workload.measurement.calls <= calls
        for run in workload.processes:
            assert 0 < len(run.times_ns) == len(run.held_ns) <= len(run.seeds)
            assert run.threads >= 1
            assert len({*run.seeds}) == len(run.seeds)
            assert set(run.verified) <= set(range(len(run.seeds)))
            assert len(run.verified) >= 2
            assert len(run.gate_ns) in (0, len(run.times_ns))
    assert {stage.stage for stage in result.stages} >= {"build", "prepare", "check", "measure"}
    environment = encode(result.environment)
    assert {"device_name", "torch", "compiler", "jail", "oracle"} <= environment.keys()
    assert result.build is not None


@needs_jail
def test_profile_says_what_limits_a_kernel(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, result = told(cache, tmp_path, *SOFTMAX_GOOD, "--mode", "profile")
    assert result.verdict is Verdict.CORRECT, result.reason
    profile = result.profile
    assert profile is not None, result.environment
    assert (profile.tool, profile.reason) == ("portable", "ncu is for CUDA devices")
    assert profile.workload == "cpu_n16_c16384"
    peak = result.environment.measured
    assert peak is not None
    assert peak.bytes_per_s == profile.metrics["peak_bytes_per_s"]
    measured = {w.name: w.measurement for w in result.workloads}[profile.workload]
    assert measured is not None
    assert profile.metrics["latency_ns"] == measured.time_ns
    assert 0 < profile.metrics["dram_throughput_pct"] <= 100
    assert 0 < profile.metrics["compute_throughput_pct"] <= 100
    assert profile.metrics["loops_vectorized_count"] > 0
    assert result.stages[-1].stage is Stage.PROFILE
    assert f"profile of {profile.workload} by portable" in capsys.readouterr().out


@needs_jail
def test_a_profiler_that_fails_fails_no_evaluation(
    config: SupervisorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> KnownPeak:
        raise RunnerUnfit("no peaks today")

    monkeypatch.setattr("gpu_runner.supervisor.tools.profiling.device_peak", fail)
    result = evaluated(config, only("vector_add", "cpu_n16384"), mode=Mode.PROFILE)
    assert result.verdict in (Verdict.CORRECT, Verdict.UNSTABLE)
    assert result.profile is None
    assert "no peaks today" in result.environment.profile_error


@needs_jail
def test_wrong_kernel_exits_with_one_and_prints_the_first_wrong_element(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = tmp_path / "wrong.cpp"
    kernel.write_text(
        'extern "C" void softmax(float* out, const float* in, int N, int C) {'
        " for (int i = 0; i < N * C; ++i) out[i] = 0.5f; }"
    )
    arguments = ["--task", "softmax", "--kernel", str(kernel), "--mode", "profile"]
    status, result = told(cache, tmp_path, *arguments)
    assert (status, result.verdict, result.profile) == (1, Verdict.WRONG_RESULT, None)
    assert Stage.PROFILE not in {stage.stage for stage in result.stages}
    printed = capsys.readouterr().out
    assert "WRONG_RESULT" in printed
    assert "first wrong element: out[0, 0] is 0.5" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--task", "softmax"], "--kernel"),
        (["--task", "no_such_task", "--kernel", str(SOFTMAX / "good.cpp")], "no_such_task"),
        (["--task", "softmax", "--kernel", "/no/such/file.cpp"], "/no/such/file.cpp"),
        (["--task", "softmax", "--kernel", str(SOFTMAX.parent / "task.toml")], "one of .cpp"),
        (["--task", "softmax", "--kernel", "x.cpp", "--device", "tpu"], "tpu"),
        ([*SOFTMAX_GOOD, "--direction", "backward"], "direction"),
    ],
)
def test_misuse_exits_with_two_and_says_what_is_wrong(
    arguments: list[str], words: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(*arguments, cache=cache) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "filter", "doctor"])
@pytest.mark.parametrize(
    ("out", "words"), [("nowhere/x.json", "does not exist"), ("", "is a folder")]
)
def test_report_that_cannot_be_written_is_refused_before_the_work(
    command: str,
    out: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for work in ("evaluate", "survey", "doctor"):
        monkeypatch.setattr(f"gpu_runner.__main__.{work}", lambda *_, **__: pytest.fail("it works"))
    given = {
        "evaluate": ["--task", "softmax", "--kernel", str(SOFTMAX / "good.cpp")],
        "filter": ["--task", "softmax"],
        "doctor": [],
    }
    assert main([command, *given[command], "--json", str(tmp_path / out)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("gpu_runner: json: ")
    assert words in printed


@pytest.mark.parametrize("number", ["0", "-3", "two", "1.5"])
def test_a_number_of_seeds_that_means_nothing_is_refused(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["filter", "--task", "softmax", "--seeds", number])
    assert ended.value.code == 2
    assert "is not a whole number of at least 1" in capsys.readouterr().err
