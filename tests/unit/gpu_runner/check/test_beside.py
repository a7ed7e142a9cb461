"""The files beside a script travel with the kernels that need them, and no others do."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.check.script import read_script
from gpu_runner.data.codec import DataError
from gpu_runner.data.verdict import DeviceKind

SCRIPT = """
import torch
{imports}
def inputs(n=8): return torch.randn(n)
def ref(x): return x * 2
def kernel(x): return x + x
"""
OTHERS = {"unused.py": "", "unused.h": "", "__init__.py": "", "bench.py": ""}


def files(folder: Path, imports: str = "", **texts: str) -> dict[str, list[str]]:
    """The names of each kernel's files."""
    texts = {"mine.py": SCRIPT.format(imports=imports), **OTHERS, **texts}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    kernels = read_script(folder / "mine.py", (), has_gpu=False).kernels
    for kernel in kernels.values():
        assert kernel.files == {name: texts[name] for name in kernel.files}
    return {name: sorted(kernel.files) for name, kernel in kernels.items()}


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ("import math, torch.nn as nn", []),
        ("import helper as h, unknown", ["helper.py", "pack/__init__.py", "pack/deep.py"]),
        ("import pack.inner.leaf", ["pack/__init__.py", "pack/inner/leaf.py"]),
        ("from pack.inner import leaf", ["pack/__init__.py", "pack/inner/leaf.py"]),
        ("from . import deeper", ["deeper.py"]),
        ("if __name__ == '__main__': import bench", []),
        ("CODE = 'in/own.cu'", ["in/own.cu", "in/type.h"]),
        ("CODE = '''\n#include \"in/type.h\"\n'''", ["in/type.h"]),
    ],
)
def test_a_module_has_what_it_imports_or_names(
    tmp_path: Path, imports: str, found: list[str]
) -> None:
    (tmp_path / "outside.py").write_text("")
    texts = {
        "helper.py": "from pack import deep",
        "deeper.py": "import mine",
        "pack/__init__.py": "",
        "pack/deep.py": "from . import deep\nfrom .. import deeper2\nfrom ..... import no",
        "pack/inner/leaf.py": "def broken(:",
        "in/own.cu": '#include "type.h"\n#include <unused.h>\n#include "no.h"',
        "in/type.h": "",
    }
    assert files(tmp_path / "scripts", imports, **texts) == {"kernel": found}


def test_a_source_has_what_it_includes(tmp_path: Path) -> None:
    texts = {
        "mine.cpp": 'int a;\n  # include "in/sum.h" // sum\n#include "mine.cpp"\n',
        "in/sum.h": '#include "type.h"\n#include "top.h"\n#include "../deeper.h"\n',
        **dict.fromkeys(("in/type.h", "type.h", "top.h", "deeper.h"), "int b;"),
    }
    beside = ["deeper.h", "in/sum.h", "in/type.h", "top.h"]
    assert files(tmp_path, **texts) == {"kernel": [], "mine.cpp": beside}


def test_a_helper_for_a_gpu_makes_the_script_one(tmp_path: Path) -> None:
    files(tmp_path, "import helper", **{"helper.py": "import triton"})
    assert read_script(tmp_path / "mine.py", (), has_gpu=False).kind is DeviceKind.CUDA


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({"mine.cpp": '#include "../out.h"'}, r"\.\./out\.h: is outside the folder"),
        ({"mine.cpp": '#include "link.h"'}, r"link\.h: is outside the folder, or a symbolic"),
        ({"mine.cpp": '#include "my own.h"'}, r"files: 'my own\.h' must be a relative path"),
        ({"mine.cpp": '#include "notes.txt"'}, r"files: 'notes\.txt' must end with"),
        ({"random.py": ""}, r"'random\.py' would hide Python's or a library's module 'random'"),
        ({"mine.py": "import helper\n" + SCRIPT.format(imports="").replace("* 2", "* helper.A")},
         r"ref\(\) or inputs\(\): needs helper\.py, but only kernels"),
        ({"mine.cpp": "\n".join(f'#include "h{n}.h"' for n in range(40))}, "the limit is 32"),
    ],
)  # fmt: skip
def test_what_cannot_travel_is_named(tmp_path: Path, texts: dict[str, str], reason: str) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (tmp_path / "out.h").write_text("")
    (folder / "link.h").symlink_to("../out.h")
    beside = {f"h{n}.h": "" for n in range(40)} | {"my own.h": "", "notes.txt": "", "helper.py": ""}
    with pytest.raises(DataError, match=reason):
        files(folder, "import random", **{**beside, **texts})
