"""What a task's signature is in C++: a header before the source, and a shim that calls it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from gpu_runner.data.signature import CParameter, Role, Signature
from gpu_runner.data.verdict import DeviceKind

NATIVE_FOLDER = Path(__file__).resolve().parents[2] / "native"
_STRUCTS = {
    "__nv_bfloat16": "struct __nv_bfloat16 { unsigned short bits; };\n",
    "__half": "struct __half { unsigned short bits; };\n",
    "__nv_fp8_e4m3": "struct __nv_fp8_e4m3 { unsigned char bits; };\n",
    "__nv_fp8_e5m2": "struct __nv_fp8_e5m2 { unsigned char bits; };\n",
}
_CUDA_HEADERS = {
    "__nv_bfloat16": "cuda_bf16.h",
    "__half": "cuda_fp16.h",
    "__nv_fp8_e4m3": "cuda_fp8.h",
    "__nv_fp8_e5m2": "cuda_fp8.h",
}
_CPU_HEADERS = {"cuda_bf16.h": "bfloat16.h", "cuda_fp8.h": "fp8.h"}
"""Where there is no CUDA, these of `NATIVE_FOLDER` stand in for its own."""

_PARAMETER = re.compile(r"(?P<const>const\b ?)?(?P<type>\w+)(?P<east> const\b)? ?(?P<pointer>\*)?")


def unmet(signature: Signature, log: str) -> str:
    """The declaration that a source does not fit, if its compiler or linker says so; else empty."""
    symbol = re.escape(signature.symbol)
    other = (
        rf"conflicting declaration of C function .*\b{symbol}\b"
        rf"|overloaded function \W*{symbol}\W* has \W*C\W* linkage"
        rf"|required symbol \W*{symbol}\W* not defined"
        rf"|function .*\b{symbol}\b.* distinguished by return type"
    )
    return f'extern "C" {signature.text}' if re.search(other, log) else ""


def declaration(signature: Signature, kind: DeviceKind, source: str = "") -> str:
    """Header included before a submission, so that another signature is a compile error.

    A `const` more or less before a `*` is the same ABI: then the declaration follows the source.
    Where there is no CUDA, its bfloat16 and eight-bit floats come with it (`_CPU_HEADERS`).
    """
    types = {parameter.ctype for parameter in signature.parameters}
    headers = sorted({_CUDA_HEADERS[t] for t in types & _CUDA_HEADERS.keys()})
    includes = "".join(_included(header, kind) for header in headers)
    return f'#include <stdint.h>\n{includes}extern "C" {_as_written(signature, source)};\n'


def _as_written(signature: Signature, source: str) -> str:
    """The signature with the source's `const`, if all else is as the task has it.

    If it has one at an output and none at an input, the source has them the other way round.
    """
    wanted = [(p.ctype, p.role is not Role.SCALAR) for p in signature.parameters]
    for match in re.finditer(rf"\b{signature.symbol}\s*\(([^()]*)\)", source):
        written = [_PARAMETER.match(" ".join(part.split())) for part in match[1].split(",")]
        if [(m["type"], m["pointer"] is not None) if m else None for m in written] == wanted:
            if _swapped(written, signature):
                continue
            parameters = [
                f"{'const ' * (m['const'] is not None or m['east'] is not None)}{p.ctype}"
                f"{'*' * (m['pointer'] is not None)} {p.name}"
                for m, p in zip(written, signature.parameters, strict=True)
                if m is not None
            ]
            return f"void {signature.symbol}({', '.join(parameters)})"
    return signature.text


def _swapped(written: Sequence[re.Match[str] | None], signature: Signature) -> bool:
    pairs = list(zip(written, signature.parameters, strict=True))
    const = {p.name for m, p in pairs if m is not None and (m["const"] or m["east"])}
    outputs = {p.name for p in signature.parameters if p.role in (Role.OUTPUT, Role.INOUT)}
    inputs = {p.name for p in signature.parameters if p.role is Role.INPUT}
    return bool(const & outputs) and bool(inputs - const)


def _included(header: str, kind: DeviceKind) -> str:
    if kind is DeviceKind.CPU and header in _CPU_HEADERS:
        return (NATIVE_FOLDER / _CPU_HEADERS[header]).read_text()
    return f"#include <{header}>\n"


def shim_source(signature: Signature) -> str:
    """C++ that unpacks an array of pointers to arguments and calls the function."""
    named = {p.ctype for p in signature.parameters} & _STRUCTS.keys()
    structs = "".join(_STRUCTS[name] for name in sorted(named))
    types = [_shim_type(parameter) for parameter in signature.parameters]
    arguments = ", ".join(f"*reinterpret_cast<{t}*>(a[{i}])" for i, t in enumerate(types))
    return (
        f"#include <stdint.h>\n{structs}"
        f'extern "C" void kbench_invoke(void* function, void** a) {{\n'
        f"  reinterpret_cast<void (*)({', '.join(types)})>(function)({arguments});\n}}\n"
    )


def _shim_type(parameter: CParameter) -> str:
    return parameter.ctype if parameter.role is Role.SCALAR else f"{parameter.ctype}*"
