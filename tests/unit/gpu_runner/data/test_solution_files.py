"""Solutions of several files: which names they may have, how large they are, and their digest."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.files import check_modules
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES, Solution
from gpu_runner.data.verdict import Language

CPP, CUDA, PYTHON = Language.CPP, Language.CUDA, Language.PYTHON


def solution(
    files: Mapping[str, str], language: Language = CPP, entry: str = "", source: str = "int x;"
) -> Solution:
    return Solution(source=source, language=language, entry=entry, files=files)


def refused(
    files: Mapping[str, str], language: Language = CPP, entry: str = "", source: str = "int x;"
) -> str:
    with pytest.raises(DataError) as caught:
        solution(files, language, entry, source)
    return str(caught.value)


def test_a_single_file_is_what_it_always_was() -> None:
    single = Solution(source="int x;", language=CPP)
    assert single.digest() == "accc776481590206a33533edd4eab36ee59a763fec8d29d12ede96eab695b8e3"
    assert single.texts == {"kernel.cpp": "int x;"}
    assert single.whole == single.code == "int x;"
    named = Solution(source="int x;", language=CPP, entry="main.cpp")
    assert (named.digest(), named.name) == (single.digest(), "kernel.cpp")


def test_every_file_and_every_name_is_part_of_the_digest() -> None:
    ways = [
        solution({}),
        solution({"a.h": ""}),
        solution({"a.h": "int y;"}),
        solution({"b.h": "int y;"}),
        solution({"a.h": "int y;"}, entry="main.cpp"),
        solution({"a.h": "int y;", "b.h": ""}),
        solution({"a.h": "", "b.h": "int y;"}),
    ]
    assert len({each.digest() for each in ways}) == len(ways)
    one, other = {"a.h": "1", "b.h": "2"}, {"b.h": "2", "a.h": "1"}
    assert solution(one).digest() == solution(other).digest()


def test_all_texts_come_in_order_with_their_names() -> None:
    several = solution({"z.h": "int z;", "a/b.h": "int b;\n"}, entry="main.cpp")
    assert list(several.texts) == ["main.cpp", "a/b.h", "z.h"]
    assert several.whole == (
        "==> main.cpp <==\nint x;\n\n==> a/b.h <==\nint b;\n\n==> z.h <==\nint z;\n\n"
    )
    module = solution({"k.cu": "__global__", "h.py": "import triton"}, PYTHON, source="import h")
    assert module.code == "import h\nimport triton"
    assert codec.decode(Solution, codec.encode(several)) == several


@pytest.mark.parametrize(
    ("name", "language", "words"),
    [
        ("", CPP, "files: '' has no name"),
        ("../x.h", CPP, "'../x.h' must be a relative path"),
        ("a/../../x.h", CPP, "must be a relative path"),
        ("/etc/x.h", CPP, "must be a relative path"),
        ("a//x.h", CPP, "must be a relative path"),
        ("./x.h", CPP, "must be a relative path"),
        ("a\\x.h", CPP, "must be a relative path"),
        (".hidden.h", CPP, "must be a relative path"),
        ("-x.h", CPP, "must be a relative path"),
        ("a b.h", CPP, "must be a relative path"),
        ("x.h\n", CPP, "must be a relative path"),
        ("ä.h", CPP, "must be a relative path"),
        ("nul\0.h", CPP, "must be a relative path"),
        ("x" * 99 + ".h", CPP, "has a name of 101 characters; the limit is 100"),
        ("x.so", CPP, "must end with one of .c .cc .cpp"),
        ("x", CPP, "must end with one of"),
        ("x.cu", CPP, "must end with one of"),
        ("x.py", CUDA, "must end with one of"),
        ("kbench_declaration.h", CPP, "has a name that kbench reserves"),
        ("torch_headers/torch/extension.h", CPP, "has a name that kbench reserves"),
        ("kbench_kernel.py", PYTHON, "has a name that kbench reserves"),
        ("gpu_runner/data/wire.py", PYTHON, "has a name that kbench reserves"),
        ("kernel.cpp", CPP, "has the same name as another file"),
        ("Kernel.CPP", CPP, "must end with one of"),
        ("KERNEL.cpp", CPP, "has the same name as another file"),
        ("kernel.cpp/x.h", CPP, "cannot be inside 'kernel.cpp', which is a file"),
    ],
)
def test_a_name_that_may_not_be_is_refused(name: str, language: Language, words: str) -> None:
    assert words in refused({name: "x"}, language)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("src/main.cpp", "entry: 'src/main.cpp' must not be in a subfolder"),
        ("main.cu", "entry: 'main.cu' must end with .cpp"),
        ("-x.cpp", "entry: '-x.cpp' must be a relative path"),
        ("kbench_x.cpp", "entry: 'kbench_x.cpp' has a name that kbench reserves"),
        ("a.h.cpp\0.cpp", "must be a relative path"),
    ],
)
def test_an_entry_that_may_not_be_is_refused(entry: str, words: str) -> None:
    assert words in refused({"a.h": ""}, entry=entry)


def test_ordinary_names_are_fine() -> None:
    solution({"a.h": "", "B.hpp": "", "in/a-1.inl": "", "in/er/x.c": "", "queue.h": ""})
    solution({"h.py": "", "pkg/__init__.py": "", "k.cu": "", "pkg/torch.py": ""}, PYTHON)
    solution({"k.cuh": "", "runner.cu": "", "torch.cuh": ""}, CUDA, "main.cu")


def test_sizes_and_counts_are_limited_together() -> None:
    half = "x" * (SOURCE_LIMIT_BYTES // 2)
    assert "files: together have" in refused({"a.h": half, "b.h": half})
    assert "files: 'a.h' contains a NUL" in refused({"a.h": "x\0"})
    assert "files: 'a.h' contains half a character" in refused({"a.h": "\ud800"})
    assert "source: is empty" in refused({"a.h": "x"}, source=" ")
    many = {f"a{index}.h": "" for index in range(31)}
    assert len(solution(many).texts) == 32
    assert "has 33 files, including the entry file; the limit is 32" in refused({**many, "b.h": ""})


@pytest.mark.parametrize(
    "name",
    [
        *("torch.py", "torch/nn.py", "triton/__init__.py", "json.py", "_thread.py", "cutlass.py"),
        *("sitecustomize.py", "usercustomize/x.py", "__main__.py", "cuda/tile.py"),
    ],
)
def test_no_file_stands_for_a_module_of_python_or_a_library(name: str) -> None:
    top = name.partition("/")[0].removesuffix(".py")
    with pytest.raises(DataError, match=f"would hide Python's or a library's module '{top}'"):
        check_modules({"own.py": "", name: ""})
    check_modules({"own/torch.py": "", "torch.h": "", "json.cu": ""})
