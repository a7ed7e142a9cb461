"""Static rules over submissions of several files: each finding names its file and its line."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from gpu_runner.data.formats import find_task
from gpu_runner.data.integrity import Suspicion
from gpu_runner.data.static import Code, code_suspicions, modules_suspicions, own_lines
from gpu_runner.data.static.module_rules import only_calls_libraries
from gpu_runner.data.torch_operations import computes
from gpu_runner.data.verdict import Abi

TASK = find_task("vector_add")


def places(found: Sequence[Suspicion]) -> list[tuple[str, int | None, str]]:
    return [(each.file, each.line, each.reason.split(":")[0]) for each in found]


def compiled(texts: dict[str, str], output: str) -> list[tuple[str, int | None, str]]:
    return places(code_suspicions(texts, [own_lines(output, list(texts))], Abi.C, TASK))


def test_code_of_headers_is_read_in_its_place() -> None:
    output = """# 0 "kernel.cpp"
# 1 "/usr/include/stdio.h" 1 3
void* popen();
# 1 "./a.h" 1
auto in_a = &dlopen;
# 2 "/usr/include/stdio.h" 2 3
int fork();
# 2 "kernel.cpp" 2
# 1 "in/b.h" 1

# 1 "in/../a.h" 1
auto again = &dlopen;
# 2 "in/b.h" 2
auto in_b = &popen;
# 3 "kernel.cpp" 2

auto last = &fopen;
"""
    texts = {"kernel.cpp": "", "a.h": "", "in/b.h": ""}
    assert compiled(texts, output) == [
        ("", 4, "files"),
        ("a.h", 1, "dynamic-loading"),
        ("in/b.h", 2, "processes"),
    ]


def test_a_file_that_nobody_includes_is_read_as_it_is() -> None:
    texts = {"kernel.cpp": "", "a.h": "", "main.cudafe1.cpp": "\nauto f = &dlopen;"}
    output = '# 0 "kernel.cpp"\n# 1 "a.h" 1\nint a;\n# 2 "kernel.cpp" 2\n'
    assert compiled(texts, output) == [("main.cudafe1.cpp", 2, "dynamic-loading")]


def test_a_stream_may_be_awaited_in_another_file() -> None:
    output = """# 1 "a.h" 1
cudaStreamCreateWithFlags(&stream, 1);
# 2 "kernel.cpp" 2
cudaStreamSynchronize(stream);
"""
    texts = {"kernel.cpp": "", "a.h": ""}
    assert compiled(texts, output) == []
    assert compiled(texts, output.replace("Synchronize", "Query")) == [("a.h", 1, "streams")]


@pytest.mark.parametrize("end", ["", "\\", "\\\n"])
def test_directives_of_every_file_are_read(end: str) -> None:
    texts = {
        "kernel.cpp": f'#include "in/a.cuh"\n#include "x.cpp"\n{end}',
        "in/a.cuh": '#include "/etc/passwd"\n#include "../x.cpp"\n#include "y.cpp"',
        "x.cpp": '#line 3 "kernel.cpp"\nint \u202ex;',
    }
    assert compiled(texts, '# 0 "kernel.cpp"\n') == [
        ("in/a.cuh", 1, "directives"),
        ("in/a.cuh", 3, "directives"),
        ("x.cpp", 1, "directives"),
        ("x.cpp", 2, "invisible-text"),
    ]


def test_modules_are_read_one_by_one() -> None:
    texts = {
        "main.py": "import helper\nimport subprocess\n",
        "helper.py": "import triton\n\n@triton.jit\ndef k(): pass\neval('1')\n",
        "k.cu": '#include <torch/extension.h>\nauto f = popen("x", "r");\n',
        "broken.py": "def (",
    }
    assert places(modules_suspicions(texts, TASK)) == [
        ("", 2, "python-processes"),
        ("broken.py", None, "macros"),
        ("helper.py", 5, "python-interpreter"),
        ("k.cu", 2, "processes"),
    ]


def test_a_kernel_may_stand_in_a_helper() -> None:
    entry, helper = "import helper", "import triton\n@triton.jit\ndef k(): pass\n"
    assert only_calls_libraries(entry, TASK, {"helper.py": helper}) == ""
    assert only_calls_libraries(entry, TASK, {"helper.py": "x = 1"}) != ""
    assert modules_suspicions({"main.py": entry, "helper.py": helper}, TASK) == ()


@pytest.mark.parametrize(
    ("read", "is_own"),
    [
        ("Path(__file__).with_name('k.cu').read_text()", True),
        ("(HERE / 'csrc' / 'x.h').read_text(encoding='utf-8')", True),
        ("open(os.path.join(HERE, 'k.cu'), 'r').read()", True),
        ("open('/etc/passwd')", False),
        ("open('/proc/self/' + 'k.cu')", False),
        ("open(name)", False),
        ("(HERE / 'csrc' / name).read_text()", True),
        ("Path(__file__).with_name('own.py').read_text()", False),
    ],
)
def test_reading_the_submission_s_own_files_is_fine(read: str, *, is_own: bool) -> None:
    source = f"import triton\n@triton.jit\ndef k(): pass\ntext = {read}\n"
    texts = {"main.py": source, "k.cu": "", "csrc/x.h": "", "own.py": "#define X"}
    found = [] if is_own else [("", 4, "python-files")]
    assert places(modules_suspicions(texts, TASK)) == found


def test_code_of_one_file_has_the_line_of_its_text() -> None:
    assert Code("a\nb\nc").place(4) == ("", 3)
    assert Code.joined({"main.py": "a\nb", "h.py": "c\nd"}).place(8) == ("h.py", 2)


@pytest.mark.parametrize(
    ("asked", "is_odd"),
    [
        ("#if __has_include(<cuda_bf16.h>)", False),
        ('#if defined(__has_include) && __has_include( "in/a.h" )', False),
        ("#ifdef __has_include", False),
        ('#if 1 && __has_include("main.ii")', True),
        ('#if __has_include("/proc/self/fd/3")', True),
        ("#if __has_include(NAME)", True),
        ("#define LOOK __has_include", True),
        ('#if __has_embed("../x.h")', True),
    ],
)
def test_looking_for_a_file_is_as_odd_as_including_it(asked: str, *, is_odd: bool) -> None:
    found = [("", 2, "directives")] if is_odd else []
    assert compiled({"kernel.cpp": f"int x;\n{asked}\n"}, '# 0 "kernel.cpp"\n') == found


TAKEN = {
    "common.py": "import os\nimport torch\nimport triton\nfrom triton import language as tl\n",
    "ops/__init__.py": "from .circle import *\n",
    "ops/circle.py": "from . import *\nfrom common import *\n",
}


@pytest.mark.parametrize(
    "taken",
    ["from common import triton", "from common import *", "from .ops import *", "import common"],
)
def test_what_a_helper_hands_on_is_what_it_was(taken: str) -> None:
    prefix = "common." if taken == "import common" else ""
    kernel = f"{taken}\n@{prefix}triton.jit\ndef k(): pass\n"
    assert only_calls_libraries(kernel, TASK, TAKEN) == ""
    assert modules_suspicions({"main.py": kernel, **TAKEN}, TASK) == ()
    attack = kernel.replace("import triton", "import triton, os, torch")
    attack += f"{prefix}os.fork()\n{prefix}torch.relu(1)\n"
    assert places(modules_suspicions({"main.py": attack, **TAKEN}, TASK)) == [
        ("", 4, "python-processes"),
        ("", 5, "python-library"),
    ]


def test_no_number_of_hints_hides_anything_else() -> None:
    names = [name for name in dir(torch) if name.isalpha() and computes(name)]
    source = "import torch\n" + "".join(f"torch.{name}()\n" for name in names)
    texts = {"main.py": source, "z.py": "import subprocess\n"}
    found = places(modules_suspicions(texts, TASK))
    assert (len(found), found[-1]) == (32, ("z.py", 1, "python-processes"))
