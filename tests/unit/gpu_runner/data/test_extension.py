"""What a module may ask a compiler for, and when it asks for the same again."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.extension import Extension


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
        {"files": {"../main.cpp": ""}, "sources": ("../main.cpp",)},
        {"sources": ()},
        {"sources": ("other.cpp",)},
        {"flags": ("-wrapper", "sh")},
        {"flags": ("-fplugin=own.so",)},
        {"flags": ("-o", "elsewhere")},
        {"link_flags": ("@words",)},
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
        {"flags": ("-O3", "-march=native", "-fopenmp", "-Ifolder1", "-isystem", "/usr/include")},
        {
            "cuda_flags": (
                "--use_fast_math",
                "-Xcompiler=-fopenmp,-O3",
                "--compiler-options",
                "-fPIC",
            )
        },
        {"link_flags": ("-L/usr/lib", "-lgomp", "-Wl,-rpath,/usr/lib", "-Wl,-Bsymbolic")},
    ],
)
def test_ordinary_flags_are_passed(changes: dict[str, Any]) -> None:
    assert extension(**changes).name == "own"
