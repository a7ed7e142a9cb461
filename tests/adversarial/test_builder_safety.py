"""A source cannot make the compiler read, run or keep anything of the host, nor work for ever."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_runner.data.verdict import Abi, DeviceKind
from gpu_runner.supervisor.build.build import LOG_LIMIT_CHARACTERS, Recipe, build
from gpu_runner.supervisor.build.recipe import Built
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.leftovers import left_behind, snapshot

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
needs_nvcc = pytest.mark.skipif(
    shutil.which("nvcc", path="/usr/local/cuda/bin:/usr/local/bin:/usr/bin") is None,
    reason="nvcc is not installed",
)

SECRET = "the-supervisors-secret"
FLOOD = "".join(
    f"#define W{i + 1} {f'W{i} ' * 10}\n"  # ten times what the one before says
    for i in range(4)
)
DOUBLING = "".join(f"#define M{i + 1} {f'M{i} ' * 10}\n" for i in range(12))
LONG_LOOP = (
    "constexpr long f(int n) { long s = 0;"
    " for (int i = 0; i < 2000; ++i) for (int j = 0; j < 8000; ++j) s += n; return s; }\n"
)

REFUSED = {  # source: what the log says
    "include": ('#include "{secret}"', "No such file"),
    "include of a home": ("#include </root/.bashrc>", "fatal error"),
    "include of the supervisor's environment": ('#include "/proc/1/environ"', "fatal error"),
    "include of itself": ("#include __FILE__", "nested"),
    "include of the compiler's own output": ('#include "/proc/self/fd/1"', "Permission denied"),
    "incbin": ('asm(".incbin \\"{secret}\\"");', "file not found"),
    "include of the assembler": ('asm(".include \\"{secret}\\"");', "No such file"),
    "embed": ('char x[] = {{\n#embed "{secret}"\n}};', "error"),
    "line": ('#line 1 "{secret}"\nint x = ;', "error"),  # a caret line is read from that file
    "dependency": ('#pragma GCC dependency "{secret}"', "No such file"),
    "precompiled header": ('#pragma GCC pch_preprocess "{secret}"', "error"),
    "wide template": (
        "template <int N> struct F {{ static constexpr int v = F<N + 1>::v; }}; int x = F<0>::v;",
        "template",
    ),
    "long constant": ("constexpr int f() {{ for (;;) {{}} }} constexpr int x = f();", "constexpr"),
    "large data": ("char big[65 << 20] = {{1}};", "the library is larger than 64 MiB"),
    "huge data": ("char big[1500 << 20] = {{1}};", "File size limit"),
    "huge section": ('asm(".space 0x7fffffffffff");', "File size limit"),
}

STOPPED = {  # what takes too much: whether memory or time ends it
    "endless zeros": ('#include "/dev/zero"', "memory"),
    "doubling macros": (DOUBLING.replace("M0", "x;") + "M12", "memory"),
    "repeated assembly": ('asm(".rept 100000000\\n.quad 1\\n.endr");', "memory"),
    "slow constants": (
        LONG_LOOP + "".join(f"constexpr long x{i} = f({i});\n" for i in range(400)),
        "time",
    ),
}

ODD = {  # compiles, and does nothing of what it wants
    "plugin by pragma": '#pragma GCC optimize("plugin=/tmp/x.so")\nint f() {{ return 1; }}',
    "plugin by attribute": '__attribute__((optimize("-fplugin=/x.so"))) int f() {{ return 1; }}',
    "dump by pragma": '#pragma GCC optimize("dump-tree-all=/tmp/x")\nint f() {{ return 1; }}',
    "looks for files": (
        '#if __has_include("{secret}") || __has_include("/root") || __has_include("/var") \\\n'
        '  || __has_include("/home") || __has_include("/etc/passwd")\n#error it is there\n#endif\n'
        "int f() {{ return 1; }}"
    ),
    "flood": FLOOD.replace("W0", '_Pragma("GCC warning \\"flood flood flood\\"")') + "W4",
    "terabyte of zeros": "char big[1ull << 40];",
    "standard input": '#include "/dev/stdin"\n',
}


@pytest.fixture(autouse=True)
def _nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KBENCH_TEST_SECRET", SECRET)
    before = snapshot()
    yield
    assert left_behind(before) == []


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.h"
    path.write_text(SECRET)
    return path


def compiled(
    source: str, tmp_path: Path, kind: DeviceKind = DeviceKind.CPU, timeout_s: float = 1.5
) -> Built:
    config = SupervisorConfig(
        cache_folder=tmp_path / "cache", build_timeout_s=timeout_s, memory_bytes=256 << 20
    )
    if kind is DeviceKind.CUDA:
        config = SupervisorConfig(cache_folder=tmp_path / "cache", build_timeout_s=60)
    name = f"kernel{kind.language.suffix}"
    flags = tuple(toolchain.flags(kind, Abi.C, "sm_90"))
    built = build(Recipe({name: source}, name, kind, flags), config)
    library = built.library.read_bytes() if built.library is not None else b""
    assert SECRET not in built.report.log
    assert SECRET.encode() not in library
    assert len(built.report.log) <= LOG_LIMIT_CHARACTERS
    return built


@pytest.mark.parametrize("name", REFUSED)
def test_source_is_refused_with_a_reason(name: str, tmp_path: Path, secret: Path) -> None:
    source, words = REFUSED[name]
    built = compiled(source.format(secret=secret), tmp_path, timeout_s=100)
    assert built.library is None
    assert words in built.report.log
    assert not built.timed_out


@pytest.mark.parametrize("name", STOPPED)
def test_source_is_stopped(name: str, tmp_path: Path) -> None:
    source, by = STOPPED[name]
    built = compiled(source, tmp_path, timeout_s=1.5 if by == "time" else 100)
    assert built.library is None
    assert (built.timed_out, built.memory_exceeded) == (by == "time", by == "memory")


@pytest.mark.parametrize("name", ODD)
def test_odd_source_is_compiled_and_gains_nothing(name: str, tmp_path: Path, secret: Path) -> None:
    source = ODD[name].format(secret=secret)
    built = compiled(source, tmp_path, timeout_s=100)
    assert built.library is not None, built.report.log


def test_a_torch_extension_sees_torch_and_no_other_package() -> None:
    folders = toolchain.torch_paths()
    assert toolchain.torch_folder() in folders
    assert toolchain.torch_folder().parent not in folders


@needs_nvcc
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('#include "{secret}"', "No such file"),
        ('asm(".incbin \\"{secret}\\"");', "file not found"),
        ('#line 1 "{secret}"\nint x = ;', "error"),
        ("#ifndef KBENCH_BAD\n#error clean\n#endif", "clean"),
    ],
)
def test_cuda_source_is_refused_with_a_reason(
    source: str, words: str, tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DKBENCH_BAD")
    built = compiled(source.format(secret=secret), tmp_path, DeviceKind.CUDA)
    assert built.library is None
    assert words in built.report.log
