"""What is carried of Python modules, what they may ask compilers for, what their texts tell."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest

from gpu_runner.data import archive
from gpu_runner.data.archive import BadArchive
from gpu_runner.data.codec import DataError
from gpu_runner.data.extension import MOST_FILES, Extension
from gpu_runner.data.normal_form import normal_form
from gpu_runner.data.packages import imported_packages
from gpu_runner.data.static import compiles_at_calls, gpu_reason, usual_kind
from gpu_runner.data.verdict import DeviceKind, Language

IMPORT = "from torch.utils.cpp_extension import load_inline\n"
OWN = "own = load_inline('own', 'int f();', functions=['f'])\n"
CALL = "def forward(x):\n    return own.f(x)\n"

AT_IMPORT = {
    "nothing": "import torch\ndef forward(input, N, C):\n    return torch.softmax(input, -1)\n",
    "by name": IMPORT + OWN + CALL,
    "in a class": IMPORT + f"class Own:\n    {OWN}",
    "in the module": f"import torch.utils.cpp_extension\ntorch.utils.cpp_extension.{OWN[6:]}",
}
AT_CALLS = {
    "triton": "import triton\n",
    "compiled": "import torch\nf = torch.compile(lambda x: x)\n",
    "in a function": f"{IMPORT}def forward(x):\n    {OWN}    return own.f(x)\n",
    "in a lambda": f"{IMPORT}forward = lambda x: {OWN[6:]}",
    "in a condition": f"{IMPORT}import torch\nif torch.cuda.device_count():\n    {OWN}{CALL}",
    "in a choice": f"{IMPORT}import sys\nown = {OWN[6:-1]} if sys.flags.debug else None\n",
    "in an attempt": f"{IMPORT}try:\n    {OWN}except RuntimeError:\n    own = None\n",
    "of another text": f"{IMPORT}A = 'a' if torch.cuda.is_available() else 'b'\n{OWN}{CALL}",
    "another name": f"{IMPORT.strip()} as made\n{OWN.replace('load_inline', 'made')}",
    "handed on": f"{IMPORT}make = load_inline\n",
    "another module": "from torch.utils import cpp_extension as e\nown = e.load_inline('o', '')\n",
    "no Python": "def load_inline(:\n",
}


@pytest.mark.parametrize("name", [*AT_IMPORT, *AT_CALLS])
def test_what_may_compile_in_a_call_is_rehearsed(name: str) -> None:
    assert compiles_at_calls((AT_IMPORT | AT_CALLS)[name]) is (name in AT_CALLS)


@pytest.mark.parametrize(
    ("source", "packages"),
    [
        ("import torch\nimport triton\nimport triton.language as tl\n", ("torch", "triton")),
        ("from numba import njit\n", ("numba",)),
        ("import cutlass.cute as cute\n", ("cutlass",)),
        ("import cuda.tile as ct\n", ("cuda.tile",)),
        ("from cuda import tile\n", ("cuda.tile",)),
        ("from scipy.linalg import blas; import numpy as np\n", ("numpy", "scipy")),
        ("with open('x'):\n    import cupy\n", ("cupy",)),
        ("import torch, numba as nb, math\n", ("torch", "numba")),
        ("this is no Python: import triton\n", ()),
        ("x = " + "(" * 5000 + "1" + ")" * 5000 + "\nimport numba\n", ()),
        # what may not happen
        ("try:\n    import numba\nexcept ImportError:\n    numba = None\n", ()),
        ("import sys\nif sys.platform == 'x':\n    import numba\n", ()),
        ("def forward(x):\n    import numba\n    return x\n", ()),
        ("class A:\n    def f(self):\n        import numba\n", ()),
    ],
)
def test_imports_are_seen_by_name(source: str, packages: tuple[str, ...]) -> None:
    assert imported_packages(source) == packages


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import triton\nimport triton.language as tl\n", "imports triton"),
        ("def forward(x):\n    import triton\n", "imports triton"),
        ("import cutlass.cute as cute\n", "imports cutlass"),
        ("from cuda import tile\n", "imports cuda.tile"),
        ("from numba import cuda\n@cuda.jit\ndef f(): ...\n", "imports numba.cuda"),
        ("import numba\n@numba.cuda.jit\ndef f(): ...\n", "uses numba.cuda"),
        ("a = load_inline('a', cpp_sources=c, cuda_sources=[k])\n", "compiles cuda_sources"),
        ("import torch\nx = torch.zeros(3, device='cuda')\n", "names the device 'cuda'"),
        ("def forward(x):\n    return x.to('cuda')\n", "names the device 'cuda'"),
        ("def forward(x):\n    return x.cuda()\n", "calls .cuda()"),
        ("import torch\ns = torch.cuda.Stream()\n", "uses torch.cuda"),
    ],
)
def test_a_module_that_needs_a_gpu_says_why(source: str, reason: str) -> None:
    assert gpu_reason(source) == reason
    assert usual_kind(Language.PYTHON, source) is DeviceKind.CUDA


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndef forward(A, B, N):\n    return A + B\n",
        "import numba\n@numba.njit\ndef f(x): ...\n",
        "try:\n    import triton\nexcept ImportError:\n    triton = None\n",
        "import torch\nd = 'cuda' if torch.cuda.is_available() else 'cpu'\ntorch.zeros(3).to(d)\n",
        "import torch\nif torch.cuda.is_available():\n    x = torch.zeros(3).cuda()\n",
        "a = load_inline('a', cpp_sources=c, cuda_sources=[])\n",
        "# import triton\n'''import cupy'''\n",
        "no Python at all: import triton\n",
    ],
)
def test_a_module_that_can_do_without_is_for_a_cpu(source: str) -> None:
    assert gpu_reason(source) == ""
    assert usual_kind(Language.PYTHON, source) is DeviceKind.CPU


NOT_TAKEN = (
    "source/kbench_kernel.py kbench_kernel.py inductor/ab/cab.py numba/__pycache__/own.nbc"
    " triton/own.pyc cute/own.pth extensions/key/own.so triton/../source/own /triton/own"
    " triton//own cuda/lock"
)


@pytest.mark.parametrize("name", NOT_TAKEN.split())
def test_sources_and_what_is_ours_are_not_taken(name: str) -> None:
    kept = {"numba/own.nbc": b"code", "programs.json": b"{}"}
    assert archive.taken(archive.written({**kept, name: b"x"})) == kept


def test_an_archive_is_the_same_for_the_same_files() -> None:
    files = {"cuda/a": b"1", "triton/b.so": b"2"}
    content = archive.written(files)
    assert content == archive.written(dict(reversed(files.items())))
    assert archive.read(content) == files
    assert [part.part for part in archive.parts(files)] == ["cuda", "triton"]
    changed = archive.parts({**files, "triton/b.so": b"3"})
    assert [p.part for p in archive.parts(files) if p not in changed] == ["triton"]


def linked() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        entry = tarfile.TarInfo("triton/own")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(entry)
    return buffer.getvalue()


def named(name: str, **headers: str) -> bytes:
    """An archive with an empty file."""
    buffer, entry = io.BytesIO(), tarfile.TarInfo(name)
    entry.pax_headers = headers
    form = tarfile.PAX_FORMAT if headers else tarfile.GNU_FORMAT
    with tarfile.open(fileobj=buffer, mode="w", format=form) as file:
        file.addfile(entry)
    return buffer.getvalue()


def test_a_name_that_cannot_be_written_again_is_left_out() -> None:
    assert archive.taken(named("triton/own")) == {"triton/own": b""}
    assert archive.taken(named("triton/\udc80")) == {}


SPARSE = named("triton/own", **{"GNU.sparse.map": "0,x", "GNU.sparse.size": "5"})
NESTED = tarfile.TarInfo("x")
NESTED.type = tarfile.GNUTYPE_LONGNAME
DEEP = NESTED.tobuf(tarfile.GNU_FORMAT) * 5000


@pytest.mark.parametrize("content", [b"", b"no archive at all" * 100, linked(), SPARSE, DEEP])
def test_what_is_no_archive_of_files_is_refused(content: bytes) -> None:
    with pytest.raises(BadArchive):
        archive.taken(content)


def extension(**changes: Any) -> Extension:
    name = changes.get("name", "own")
    told: dict[str, Any] = {
        "name": name,
        "files": {"folder0/main.cpp": f"PyObject* PyInit_{name}();"},
        "sources": ("folder0/main.cpp",),
        "flags": (f"-DTORCH_EXTENSION_NAME={name}", "-O3"),
    }
    return Extension(**{**told, **changes})


def test_a_name_is_no_part_of_what_is_compiled() -> None:
    assert extension().key() == extension(name="own_5f3a").key()
    assert extension().key() != extension(files={"folder0/main.cpp": ""}).key()
    assert extension().key() != extension(flags=("-O2",)).key()
    assert extension().key() != extension(link_flags=("-lm",)).key()


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../own"},
        {"files": {"/etc/main.cpp": ""}, "sources": ("/etc/main.cpp",)},
        {"sources": ()},
        {"sources": ("other.cpp",)},
        {"files": {"-ofolder0": ""}, "sources": ("-ofolder0",)},
        {"flags": ("-wrapper", "sh")},
        {"flags": ("-fplugin=own.so",)},
        {"cuda_flags": ("-Xcompiler=-fPIC,-specs=own",)},
        {"cuda_flags": ("-ccbin", "own")},
    ],
)
def test_what_would_replace_the_compiler_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        extension(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"flags": ("-DX=\0",)},
        {"flags": ("-DX=\ud800",)},
        {"files": {"folder0/main.cpp": "// \ud800"}},
        {"files": {"folder0/main.cpp": "", **{f"{n}.h": "" for n in range(MOST_FILES)}}},
    ],
)
def test_what_no_compiler_could_be_given_is_refused(changes: dict[str, Any]) -> None:
    """Its author could otherwise make an evaluation fail as if by our fault."""
    with pytest.raises(DataError):
        extension(**changes)


def test_ordinary_flags_are_passed() -> None:
    flags = "-O3 -march=native -fopenmp -Ifolder1 -isystem /usr/include"
    cuda = "--use_fast_math -Xcompiler=-fopenmp,-O3 --compiler-options -fPIC"
    link = "-L/usr/lib -lgomp -Wl,-rpath,/usr/lib -Wl,-Bsymbolic"
    words = (tuple(each.split()) for each in (flags, cuda, link))
    for kind, given in zip(("flags", "cuda_flags", "link_flags"), words, strict=True):
        assert extension(**{kind: given}).name == "own"


SOURCE = '''# A comment
"""What it is."""
import os  # for paths

X = """two
lines"""


def forward(x):
    # inside
    return (
        x + 1
    )
'''


def test_comments_and_layout_go_and_the_program_stays() -> None:
    form = normal_form(SOURCE)
    other = normal_form(SOURCE.replace("# inside\n    ", "").replace("# A comment\n", "\n\n"))
    assert form.text == other.text
    assert "#" not in form.text
    assert '"""What it is."""' in form.text
    names: dict[str, object] = {}
    exec(form.text, names)
    assert names["X"] == "two\nlines"


def test_lines_are_those_of_the_source() -> None:
    form = normal_form(SOURCE)
    places = {line: number for number, line in enumerate(form.text.splitlines(), 1)}
    assert form.source_line(places["import os"]) == 3
    assert form.source_line(places["def forward(x):"]) == 9
    assert form.source_line(places["    return x + 1"]) == 11
    assert form.source_line(None) is None


@pytest.mark.parametrize(
    "source",
    [
        "def forward(:\n",
        "def f(x):\n    # type: (Tensor) -> Tensor\n    return x\n",
        "x = " + "(" * 500 + ")" * 500,
    ],
)
def test_what_cannot_or_must_not_be_written_anew_stays(source: str) -> None:
    assert normal_form(source).text == source
    assert normal_form(source).source_line(2) == 2
