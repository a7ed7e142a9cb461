"""C signatures of kernels: `void softmax(float* out, const float* input, int N, int C)`."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from enum import StrEnum

from gpu_runner.data.codec import DataError

SCALAR_TYPES = {
    "float": ("float32", 4),
    "double": ("float64", 8),
    "int": ("int32", 4),
    "int32_t": ("int32", 4),
    "long": ("int64", 8),
    "int64_t": ("int64", 8),
    "__nv_bfloat16": ("bfloat16", 2),
    "__half": ("float16", 2),
    "int8_t": ("int8", 1),
    "uint8_t": ("uint8", 1),
    "int16_t": ("int16", 2),
    "bool": ("bool", 1),
    "__nv_fp8_e4m3": ("float8_e4m3fn", 1),
    "__nv_fp8_e5m2": ("float8_e5m2", 1),
}
"""C type -> (dtype name, size in bytes)."""
EIGHT_BIT_FLOATS = ("float8_e4m3fn", "float8_e5m2")
"""Dtypes of numbers that are stored, and computed with in a wider one."""

_DECLARATION = re.compile(r"^\s*void\s+([A-Za-z_]\w*)\s*\((.*)\)\s*;?\s*$", re.DOTALL)
_PARAMETER = re.compile(
    r"^(?P<const>const\s+)?(?P<type>[A-Za-z_]\w*)\s*(?P<pointer>\*?)\s*(?P<name>[A-Za-z_]\w*)"
    r"(?:\s*=\s*\S+)?$"
)


class Role(StrEnum):
    """What the caller does with a parameter."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"
    SCALAR = "scalar"


@dataclass(frozen=True)
class CParameter:
    """One parameter of a C signature; `ctype` is the type without const and pointer."""

    name: str
    ctype: str
    role: Role

    @property
    def dtype(self) -> str:
        """Name of the torch dtype that the C type holds."""
        return SCALAR_TYPES[self.ctype][0]


@dataclass(frozen=True)
class Signature:
    """A kernel's C declaration: pointers to const are inputs, other pointers outputs."""

    symbol: str
    parameters: tuple[CParameter, ...]
    text: str

    @classmethod
    def parse(cls, text: str, inout: tuple[str, ...] = ()) -> Signature:
        """Parse a declaration; `inout` names the pointers that are read and written.

        Raises `DataError` (field `signature`) on anything but `void NAME(TYPE name, ...)` over
        the types in `SCALAR_TYPES`.
        """
        match = _DECLARATION.match(text)
        if match is None:
            raise DataError("signature", f"{text!r} is not `void NAME(...)`")
        symbol, body = match.groups()
        parameters = tuple(_parameter(part, inout) for part in body.split(","))
        names = [parameter.name for parameter in parameters]
        if len(set(names)) != len(names):
            raise DataError("signature", "two parameters have the same name")
        missing = set(inout) - set(names)
        if missing:
            raise DataError("inout", f"{sorted(missing)[0]!r} is not in the signature")
        if not any(p.role in (Role.OUTPUT, Role.INOUT) for p in parameters):
            raise DataError("signature", "has no output (a pointer to a non-const type)")
        clean = re.sub(r"\s*=\s*[^,)]+", "", " ".join(text.split())).rstrip("; ")
        return cls(symbol, parameters, clean)

    @property
    def outputs(self) -> tuple[CParameter, ...]:
        return tuple(p for p in self.parameters if p.role in (Role.OUTPUT, Role.INOUT))


def argument_name(name: str) -> str:
    """The C parameter that one of Python's stands for: `in` for `in_`, as `in` is a keyword."""
    plain = name.removesuffix("_")
    return plain if keyword.iskeyword(plain) else name


def _parameter(text: str, inout: tuple[str, ...]) -> CParameter:
    match = _PARAMETER.match(" ".join(text.replace("*", "* ").split()))
    if match is None:
        raise DataError("signature", f"cannot parse the parameter {text.strip()!r}")
    if text.strip().isidentifier():
        raise DataError("signature", f"the parameter {text.strip()!r} needs both a type and a name")
    name, ctype = match["name"], match["type"]
    if ctype not in SCALAR_TYPES:
        raise DataError("signature", f"{ctype!r} is not one of {', '.join(SCALAR_TYPES)}")
    if not match["pointer"]:
        if SCALAR_TYPES[ctype][0] in EIGHT_BIT_FLOATS:
            raise DataError("signature", f"{name!r} must be a pointer or a float, not {ctype}")
        return CParameter(name, ctype, Role.SCALAR)
    if name in inout:
        return CParameter(name, ctype, Role.INOUT)
    return CParameter(name, ctype, Role.INPUT if match["const"] else Role.OUTPUT)
