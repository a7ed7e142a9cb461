"""A crash says where it lies beside a call's tensors, and of which workload the call was."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.build.declaration import NATIVE_FOLDER
from gpu_runner.supervisor.runner.faults import Fault, FaultError, naming

PROGRAM = """
#include "signals.h"
#include <sys/mman.h>
int main(int, char** argv) {
  size_t room = size_t{256} << 20;  // none of it may be touched
  auto data = static_cast<char*>(
      mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  kb_tensors[2] = {data, 4096};
  kb_catch_signals(1, nullptr, 0);
  volatile char* at = argv[1][0] == 'n' ? nullptr : data + atol(argv[2]);
  if (argv[1][0] == 'r') return *at;
  *at = 1;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signals")
    source, built = folder / "crash.cpp", folder / "crash"
    source.write_text(PROGRAM)
    include = f"-I{NATIVE_FOLDER}"
    subprocess.run(["g++", "-std=c++20", include, str(source), "-o", str(built)], check=True)
    return built


@pytest.mark.parametrize(
    ("how", "at", "words"),
    [
        ("write", 5096, "a write 1000 bytes past the end of argument 3 (4096 bytes): Segm"),
        ("read", 4096, "a read 0 bytes past the end of argument 3 (4096 bytes): Segm"),
        ("write", 200 << 20, "Segmentation fault at address 0x"),
        ("null", 0, "Segmentation fault at address (nil)"),
    ],
)
def test_a_crash_says_how_far_beyond_which_argument(
    program: Path, how: str, at: int, words: str
) -> None:
    run = subprocess.run([str(program), how, str(at)], stdout=subprocess.PIPE, check=False)
    assert words in run.stdout.decode(errors="replace")
    assert ("argument" in words) is (b"argument" in run.stdout)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("it crashed", "it crashed, on n256"),
        ("a read past argument 2", "a read past argument 2 (in), on n256"),
        ("wrong on n256", "wrong on n256"),
    ],
)
def test_a_fault_of_a_call_names_its_workload_and_argument(said: str, told: str) -> None:
    with pytest.raises(FaultError) as raised, naming("n256", ["out", "in"]):
        raise FaultError(Fault(Verdict.TIME_LIMIT, said))
    assert raised.value.fault == Fault(Verdict.TIME_LIMIT, told)
