"""What is read of a built library: each hostile one is noticed, no honest one is."""

from __future__ import annotations

import dataclasses
import random
import subprocess
import tarfile
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.formats import find_task
from gpu_runner.data.integrity import Check
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Abi, DeviceKind, Language, Mode
from gpu_runner.supervisor.build import elf
from gpu_runner.supervisor.build.binary import LIBRARY_RULES, check_library, static_suspicions
from gpu_runner.supervisor.device import toolchain

KERNEL = 'extern "C" void vector_add(const float*, const float*, float* C, int) { C[0] = 1; }\n'
LABEL = 'extern "C" void disguised() asm("{}"); void use() {{ disguised(); }}'

HOSTILE: list[tuple[str, str, str, tuple[str, ...]]] = [
    # What is looked at, a word of the reason, source, linker flags.
    ("import", "dlopen", '#include <dlfcn.h>\nvoid* p = dlopen("x", 1);', ()),
    ("import", "dlsym", LABEL.format("dlsym"), ()),
    ("import", "fork", "#include <unistd.h>\nint p = fork();", ()),
    ("import", "mprotect", LABEL.format("mprotect"), ()),
    ("import", "system", '#include <cstdlib>\nint s = std::system("true");', ()),
    ("import", "socket", LABEL.format("socket"), ()),
    ("import", "personality", LABEL.format("personality"), ()),
    (
        "export",
        "cudaEventElapsedTime",
        'extern "C" int cudaEventElapsedTime(float* t, void*, void*) { *t = 0; return 0; }',
        (),
    ),
    ("import", "write", "#include <unistd.h>\nauto n = write(3, KERNEL, 4);", ()),
    ("import", "__read_chk", LABEL.format("__read_chk"), ()),
    ("import", "fopen64", LABEL.format("fopen64"), ()),
    ("import", "cublasSgemm_v2", LABEL.format("cublasSgemm_v2"), ()),
    ("import", "ifstream", '#include <fstream>\nstd::ifstream file("x");', ()),
    (
        "import",
        "detach",
        "#include <thread>\nvoid start() { std::thread([] {}).detach(); }",
        (),
    ),
    (
        "export",
        "clock_gettime",
        'extern "C" int clock_gettime(int, void*) { return 0; }',
        (),
    ),
    ("constructor", "early", 'extern "C" __attribute__((constructor)) void early() {}', ()),
    (
        "constructor",
        "without a name",
        'void early() { asm("nop\\nnop"); }\n'
        '__attribute__((section(".init_array"))) auto* p = (char*)&early + 1;',
        (),
    ),
    (
        "ifunc",
        "to choose",
        'extern "C" { void g() {} void (*pick())() { return g; } }\n'
        'extern "C" void f() __attribute__((ifunc("pick")));',
        (),
    ),
    ("embedded", "another", 'asm(".data\\n.incbin \\"/bin/true\\"");', ()),
    ("search-path", "/tmp/evil", "", ("-Wl,-rpath=/tmp/evil",)),
    ("mapping", "stacks", "", ("-Wl,-z,execstack",)),
    ("mapping", "changes its code", 'asm(".text\\n.quad place\\n.data\\nplace: .long 1\\n");', ()),
    ("needed", "libevil", "", ("-Wl,--no-as-needed", "libevil.so")),
]

HONEST = {
    "plain": "",
    "placement": "#include <new>\nvoid* p(void* x) { return new (x) int(1); }",
    "initialisers": "#include <iostream>\n#include <string>\nstatic std::string s(40, 'x');"
    'static int n = std::string(std::cout ? s : "").size(); int& m() { return n; }',
    "OpenMP": "#include <omp.h>\nvoid p(float* x) {\n#pragma omp parallel for\n"
    "for (int i = 0; i < 1 << 20; ++i) x[i] += omp_get_thread_num(); }",
    "threads joined": "#include <thread>\n#include <vector>\n#include <mutex>\nstd::mutex m;"
    "void p() { std::vector<std::thread> t(4); for (auto& x : t) x = std::thread([] { m.lock(); });"
    " for (auto& x : t) x.join(); }",
    "dispatch on the machine": '__attribute__((target_clones("avx2", "default")))'
    " float p(float x) { return x * 2; }",
    "scratch and tables": "#include <sys/mman.h>\n#include <cmath>\n#include <cstdlib>\n"
    "#include <chrono>\nthread_local float table[64];"
    " static const float made = std::sin(3.0f) * std::rand();"
    " float* p() { table[0] = made; return (float*)mmap(0, 4096, 3, 34, -1, 0); }"
    "auto q() { return std::chrono::steady_clock::now(); }",
    "errors": "#include <stdexcept>\n#include <cstdio>\nvoid p(int n) {"
    ' if (n) throw std::runtime_error("bad"); fprintf(stderr, "%d", n); std::puts("x"); }',
}


def request(
    task: str = "vector_add", *, libraries: bool = False, source: str = "x"
) -> EvaluationRequest:
    return EvaluationRequest(
        evaluation_id="test",
        task=dataclasses.replace(find_task(task), libraries=libraries),
        solution=Solution(source=source, language=Language.CPP),
        mode=Mode.TEST,
        device="cpu",
    )


def compiled(folder: Path, source: str, flags: tuple[str, ...] = ()) -> Path:
    """A library of our own making; with the flags of every build and some of the linker's."""
    (folder / "kernel.cpp").write_text(KERNEL + source.replace("KERNEL", '"kernel"'))
    fixed = [f for f in toolchain.flags(DeviceKind.CPU, Abi.C, "") if f != "-O3"]
    command = ["g++", "kernel.cpp", *fixed, "-O1", *flags, "-o", "library.so"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return folder / "library.so"


def reasons(library: Path, of: EvaluationRequest | None = None) -> list[str]:
    found = check_library(library.read_bytes(), of or request())
    assert all(suspicion.check is Check.LIBRARY for suspicion in found)
    return [suspicion.reason for suspicion in found]


def test_waits_of_the_library_are_nobodys_system_calls(tmp_path: Path) -> None:
    waits = "#include <latch>\nvoid p() { std::latch l(1); l.count_down(); l.wait(); }"
    assert reasons(compiled(tmp_path, waits)) == []


def test_a_reason_names_the_line_that_has_the_function(tmp_path: Path) -> None:
    library = compiled(tmp_path, "#include <unistd.h>\nint p = fork();")
    found = check_library(library.read_bytes(), request(source="x\n\nint p = fork();"))
    assert [each.line for each in found] == [3]


def test_what_a_module_has_built_is_read_as_well(tmp_path: Path) -> None:
    hostile = compiled(tmp_path, "#include <unistd.h>\nint p = fork();")
    archive = tmp_path / "prepared.tar"
    with tarfile.open(archive, "w") as opened:
        opened.add(hostile, "extensions/0123abcd/own.so")
        opened.add(hostile, "triton/launcher.so")
    of = request(
        "softmax", source="from torch.utils.cpp_extension import load_inline as own\nown()"
    )
    module = dataclasses.replace(of.solution, language=Language.PYTHON)
    found = static_suspicions(dataclasses.replace(of, solution=module), archive)
    assert [each.reason.split(":")[:2] for each in found] == [["import", " processes"]]
    archive.write_bytes(b"no archive")
    [only] = static_suspicions(dataclasses.replace(of, solution=module), archive)
    assert only.reason.startswith("unreadable: ")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("good"), HONEST["OpenMP"])


@pytest.mark.parametrize("index", range(len(HOSTILE)))
def test_hostile_library_is_noticed(index: int, tmp_path: Path) -> None:
    rule, word, source, flags = HOSTILE[index]
    if "libevil.so" in flags:
        command = ["g++", "-shared", "-x", "c++", "/dev/null", "-o", "libevil.so"]
        subprocess.run(command, check=True, cwd=tmp_path)
    found = reasons(compiled(tmp_path, source, flags))
    assert [reason for reason in found if reason.startswith(f"{rule}: ") and word in reason], found


def test_everything_that_is_looked_at_has_a_hostile_library() -> None:
    assert {name for name, _ in LIBRARY_RULES} == {rule for rule, _, _, _ in HOSTILE}


@pytest.mark.parametrize("name", HONEST)
def test_honest_library_is_not_accused(name: str, tmp_path: Path) -> None:
    assert reasons(compiled(tmp_path, HONEST[name])) == []


@pytest.mark.parametrize(
    ("symbol", "word"),
    [
        ("_ZN2at4_ops6matmul4callERKNS_6TensorES4_", "'at::matmul'"),
        ("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_", "'at::add_Tensor'"),
        ("_ZN2at6native10layer_normEv", "at6native"),
        ("_ZN2at13globalContextEv", "torch-state"),
        ("PyRun_SimpleString", "python"),
        ("PyImport_ImportModule", "python"),
    ],
)
def test_extension_that_needs_torch_to_compute(symbol: str, word: str, tmp_path: Path) -> None:
    library = compiled(tmp_path, LABEL.format(symbol))
    found = reasons(library, request("layernorm"))
    assert len(found) == 1
    assert word in found[0]
    allowed = reasons(library, request("layernorm", libraries=True))
    assert bool(allowed) == (word in ("torch-state", "python"))


def test_extension_may_allocate_view_and_copy(tmp_path: Path) -> None:
    symbols = ["10empty_like4callE", "5zeros4callE", "10contiguous4callE", "8to_dtype4callE"]
    names = [f"_ZN2at4_ops{symbol}v" for symbol in symbols] + ["PyTuple_New", "PyEval_SaveThread"]
    source = "".join(
        f'extern "C" void f{i}() asm("{name}"); void u{i}() {{ f{i}(); }}'
        for i, name in enumerate(names)
    )
    assert reasons(compiled(tmp_path, source), request("layernorm")) == []


def test_no_number_of_torch_s_operations_hides_anything_else(tmp_path: Path) -> None:
    names = [f"_ZN2at4_ops{len(f'matmul{i}')}matmul{i}4callEv" for i in range(40)]
    source = 'extern "C" __attribute__((constructor)) void early() {}'
    source += "".join(
        f'extern "C" void f{i}() asm("{name}"); void u{i}() {{ f{i}(); }}'
        for i, name in enumerate(names)
    )
    found = reasons(compiled(tmp_path, source), request("layernorm"))
    assert len(found) == 32
    assert found[0].startswith("constructor: ")


def test_library_of_a_vendor_may_be_called_where_the_task_says_so(tmp_path: Path) -> None:
    library = compiled(tmp_path, LABEL.format("cublasSgemm_v2"))
    assert reasons(library, request(libraries=True)) == []


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF" + b"\0" * 200, b"MZ" * 100])
def test_what_cannot_be_read_is_suspicious(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    path.write_bytes(content)
    assert [reason.split(":")[0] for reason in reasons(path)] == ["unreadable"]


def test_cut_library_is_suspicious(good: Path, tmp_path: Path) -> None:
    content, path = good.read_bytes(), tmp_path / "library.so"
    for size in range(0, 4096, 256):
        path.write_bytes(content[:size])
        assert reasons(path)[0].startswith("unreadable")


def test_names_that_share_their_ends_fill_no_memory(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file holds such names once, and whoever reads them has each of them."""
    monkeypatch.setattr(elf, "NAMES_LIMIT", 100)
    assert reasons(good) == ["unreadable: the library cannot be read: its names are too long"]


def test_segments_are_not_searched_again_for_each_name(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many of both, that would take a quarter of an hour."""
    searched: list[int] = []
    offset = elf.Library.offset
    monkeypatch.setattr(elf.Library, "offset", lambda *given: searched.append(1) or offset(*given))
    assert len(elf.Library(good.read_bytes()).symbols) > len(searched)


def test_no_bytes_make_the_reader_fail(good: Path, tmp_path: Path) -> None:
    content, path = good.read_bytes(), tmp_path / "library.so"
    draw = random.Random(5)
    for _ in range(60):
        broken = bytearray(content)
        for _ in range(draw.choice((1, 3, 30))):
            broken[draw.randrange(0, 3000 if draw.random() < 0.8 else len(broken))] = draw.choice(
                (0, 1, 0x7F, 0xFF, draw.randrange(256))
            )
        path.write_bytes(broken)
        check_library(path.read_bytes(), request())


@pytest.mark.timeout(100)
def test_names_of_any_length_are_read_in_time(tmp_path: Path) -> None:
    """A line's end at the end of a name is what a pattern of words stumbles over."""
    source = ""
    for number in range(4):
        name = f'\\"_GLOBAL__I_{number}{"A5" * 30_000}\\012b\\"'
        source += f'void early{number}() {{ asm("{name}: nop"); }}\n'
        source += f'asm(".section .init_array,\\"aw\\"\\n.quad {name}\\n.text");\n'
    assert reasons(compiled(tmp_path, source)) == []
