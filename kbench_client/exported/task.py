"""The task: draws inputs, computes the reference, and says how far outputs are off."""

from __future__ import annotations

import ctypes
import functools
import importlib
import inspect
import json
import keyword
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HERE = Path(__file__).parent
FOLDER = HERE / "kernel"
"""The kernel's files, as they were submitted."""
WINNER: dict[str, Any] = json.loads((HERE / "winner.json").read_text("utf-8"))
C_TYPES: dict[str, tuple[str, Any]] = {
    "float": ("float32", ctypes.c_float),
    "double": ("float64", ctypes.c_double),
    "int": ("int32", ctypes.c_int),
    "int32_t": ("int32", ctypes.c_int32),
    "long": ("int64", ctypes.c_long),
    "int64_t": ("int64", ctypes.c_int64),
    "int8_t": ("int8", ctypes.c_int8),
    "uint8_t": ("uint8", ctypes.c_uint8),
    "int16_t": ("int16", ctypes.c_int16),
    "bool": ("bool", ctypes.c_bool),
    "__nv_bfloat16": ("bfloat16", None),
    "__half": ("float16", None),
    "__nv_fp8_e4m3": ("float8_e4m3fn", None),
    "__nv_fp8_e5m2": ("float8_e5m2", None),
}
"""A C type's dtype, and how a number of it is passed; the last ones stand behind pointers alone."""
NEGLIGIBLE = {"float32": 2.0**-100, "bfloat16": 2.0**-100, "float64": 2.0**-996}
"""Errors that never count, by dtype. Source: kbench's docs/bounds.md."""
_STORED = (torch.float8_e4m3fn, torch.float8_e5m2)
_CHUNK = 1 << 22  # chosen: elements that are compared at once, 32 MiB in float64
_FORMULA = {"min": min, "max": max, "sqrt": math.sqrt, "log2": math.log2, "ceil": math.ceil}

Arguments = tuple[Any, ...]
Outputs = tuple[Tensor, ...]


def c_name(name: str) -> str:
    """The C parameter that one of Python's stands for: `in` for `in_`."""
    plain = name.removesuffix("_")
    return plain if keyword.iskeyword(plain) else name


NAMES = tuple(map(c_name, WINNER["arguments"]))
DIRECTION: str = WINNER["direction"]
_CTYPES = {each["name"]: each["ctype"] for each in WINNER["parameters"]}


@dataclass(frozen=True)
class Drawn:
    """Arguments of one call, and everything that was drawn for it, by name."""

    arguments: Arguments
    values: Mapping[str, Any]


def dtype_of(name: str) -> torch.dtype:
    """PyTorch's dtype of that name."""
    return getattr(torch, name)  # type: ignore[no-any-return]


def tensors_in(value: object) -> Iterator[Tensor]:
    """Every tensor in a value, through tuples, lists and dictionaries, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item)


def mapped(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    """A value with `change` applied to every tensor in it, through tuples and lists."""
    if isinstance(value, tuple | list):
        return type(value)(mapped(change, item) for item in value)
    return change(value) if isinstance(value, Tensor) else value


def seen(name: str, value: Any) -> Any:
    """A drawn value as a kernel sees it: of its C type, or in the task's dtype; contiguous."""
    if name in _CTYPES and not isinstance(value, Tensor):
        return number(name, value)
    wanted = dtype_of(C_TYPES[_CTYPES[name]][0] if name in _CTYPES else WINNER["dtype"])

    def change(tensor: Tensor) -> Tensor:
        is_real = tensor.is_floating_point() and tensor.dtype not in _STORED
        is_cast = name in _CTYPES or (is_real and wanted.is_floating_point and wanted.itemsize > 1)
        return tensor.detach().to(wanted if is_cast else tensor.dtype).contiguous()

    return mapped(change, value)


def number(name: str, value: Any) -> Any:
    """A number, rounded as the C ABI passes it; anything else stays."""
    if not isinstance(value, int | float) or name not in _CTYPES:
        return value
    dtype, ctype = C_TYPES[_CTYPES[name]]
    return value if ctype is None else ctype(value if "float" in dtype else int(value)).value


def sizes(value: Any) -> Any:
    """What the times of a call depend on: dtypes and shapes of tensors, and all other values."""
    if isinstance(value, Tensor):
        return value.dtype, tuple(value.shape)
    if isinstance(value, tuple | list):
        return tuple(map(sizes, value))
    return type(value), value


def draw(workload: Mapping[str, Any], seed: int, device: str) -> Drawn:
    """Inputs of a workload, the same for the same seed."""
    torch.manual_seed(seed)
    random.seed(seed)
    return _drawn(workload, device)


def example(workload: Mapping[str, Any]) -> Arguments:
    """A workload's arguments for their sizes alone: without memory, if they can be drawn so."""
    with torch.random.fork_rng(devices=()):  # whoever calls has seeds of their own
        try:
            return _drawn(workload, "meta").arguments
        except RuntimeError:  # some depend on others' values
            return _drawn(workload, "cpu").arguments


def _drawn(workload: Mapping[str, Any], device: str) -> Drawn:
    with torch.no_grad(), torch.device(device):
        values = {**workload["parameters"], **_module().make_inputs(**workload["parameters"])}
        values = {name: seen(name, value) for name, value in values.items()}
        if DIRECTION == "backward":
            output = _call("forward_fn", values)
            gradient = mapped(torch.randn_like, output)
            values |= {"output": output, "grad_output": seen("grad_output", gradient)}
    defaults = _defaults(f"{DIRECTION}_fn")
    return Drawn(tuple({**defaults, **values}[name] for name in NAMES), values)


def expected(arguments: Arguments) -> Outputs:
    """The reference's outputs in float64."""
    return tuple(tensors_in(_exact(f"{DIRECTION}_fn", dict(zip(NAMES, arguments, strict=True)))))


def fallback(arguments: Arguments) -> Outputs:
    """What PyTorch computes: the task's baseline, or its reference."""
    own = "baseline_fn" if DIRECTION == "forward" else ""
    name = own if hasattr(_module(), own) else f"{DIRECTION}_fn"
    return _reference(name, mapped(Tensor.contiguous, arguments))  # sparse ones ignore strides


def outputs_like(arguments: Arguments) -> list[tuple[Any, torch.dtype]]:
    """Shape and dtype of each output; nothing is computed where the reference allows that."""
    try:
        ghosts = mapped(lambda tensor: torch.empty_like(tensor, device="meta"), arguments)
        outputs = _reference(f"{DIRECTION}_fn", ghosts)
    except RuntimeError:  # it looks at values, which tensors without memory have not
        outputs = _reference(f"{DIRECTION}_fn", arguments)
    return [(output.shape, output.dtype) for output in outputs]


def output_names(count: int) -> list[str]:
    """Names of the outputs, as a verifier knows them."""
    if parameters := WINNER["parameters"]:
        return [each["name"] for each in parameters if each["role"] in ("output", "inout")]
    return ["output"] if count == 1 else [f"output[{index}]" for index in range(count)]


def error(workload: Mapping[str, Any], drawn: Drawn, outputs: Outputs) -> float:
    """Largest error of a call's outputs over the task's bound: 1 and below is right.

    Raises `ValueError` where shapes or numbers of outputs differ from the reference's.
    """
    module, names = _module(), output_names(len(outputs))
    values = {**workload["parameters"], **drawn.values}
    if DIRECTION == "forward" and hasattr(module, "verify_fn"):
        return _verified(values, dict(zip(names, outputs, strict=True)))
    wanted = expected(drawn.arguments)
    if [each.shape for each in wanted] != [each.shape for each in outputs]:
        raise ValueError(f"outputs have the shapes {[tuple(each.shape) for each in outputs]}")
    scales: list[Tensor | None] = [None] * len(wanted)
    if hasattr(module, f"{DIRECTION}_scale"):
        values.setdefault("inner_eps", _inner_eps())
        scales = list(tensors_in(_exact(f"{DIRECTION}_scale", values)))
    tolerance = WINNER["tolerance"]
    terms = eval(tolerance["reduction"], {**_FORMULA, **workload["parameters"]})  # noqa: S307  as much code as reference.py
    factor = tolerance["constant"] + tolerance["growth"] * math.sqrt(terms)
    rows = zip(outputs, wanted, scales, strict=True)
    return max(_scaled(actual, want, factor, scale) for actual, want, scale in rows)


@functools.cache
def _module() -> Any:
    return importlib.import_module(".reference", __package__)


def _defaults(name: str) -> dict[str, Any]:
    parameters = inspect.signature(getattr(_module(), name)).parameters.items()
    return {c_name(n): p.default for n, p in parameters if p.default is not p.empty}


def _call(name: str, values: Mapping[str, Any]) -> Any:
    """A function of reference.py with those of the values that it takes."""
    function = getattr(_module(), name)
    names, known = inspect.signature(function).parameters, {**_defaults(name), **values}
    return function(*(known[c_name(each)] for each in names))


def _exact(name: str, values: Mapping[str, Any]) -> Any:
    """The same in float64, on the values' device."""

    def change(tensor: Tensor) -> Tensor:
        return tensor.to(torch.float64 if tensor.is_floating_point() else tensor.dtype, copy=True)

    device = next((each.device for each in tensors_in(dict(values))), torch.device("cpu"))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), device:
            return _call(name, {key: mapped(change, value) for key, value in values.items()})
    finally:
        torch.set_default_dtype(before)


def _reference(name: str, arguments: Arguments) -> Outputs:
    """A function's outputs, of the dtypes that the C ABI names; what it may change is a copy."""
    roles = {each["name"]: each["role"] for each in WINNER["parameters"]}
    values = dict(zip(NAMES, arguments, strict=True))
    values |= {n: v.clone() for n, v in values.items() if roles.get(n) == "inout"}
    outputs = tuple(tensors_in(_call(name, values)))
    if not roles:
        return outputs
    dtypes = [dtype_of(C_TYPES[_CTYPES[each]][0]) for each in output_names(len(outputs))]
    return tuple(each.to(dtype) for each, dtype in zip(outputs, dtypes, strict=True))


def _real() -> torch.dtype:
    """The dtype whose epsilon is meant: the task's, or the first real output's."""
    written = [_CTYPES[name] for name in output_names(1) if name in _CTYPES]
    known = [WINNER["dtype"], *(C_TYPES[each][0] for each in written), "float32"]
    first, *others = (dtype_of(name) for name in known)
    if first.is_floating_point and first not in _STORED:
        return first
    return next(each for each in others if each.is_floating_point)


def _inner_eps() -> float:
    outer = _real()
    return torch.finfo(torch.promote_types(outer, torch.float32)).eps / torch.finfo(outer).eps


def _verified(inputs: Mapping[str, Any], outputs: Mapping[str, Tensor]) -> float:
    """The largest residual of the task's own verifier."""
    given: list[Any] = [
        {name: mapped(lambda t: t.double() if t.is_floating_point() else t, value)
         for name, value in values.items()}
        for values in (inputs, outputs)
    ]  # fmt: skip
    if len(inspect.signature(_module().verify_fn).parameters) > len(given):
        given.append(torch.finfo(_real()).eps)
    with torch.no_grad():
        found = [torch.as_tensor(each).double() for each in _module().verify_fn(*given).values()]
    return max(math.inf if each.isnan().any() else float(each.max()) for each in found)


def _scaled(actual: Tensor, wanted: Tensor, factor: float, scale: Tensor | None) -> float:
    """Largest |actual - wanted| over `eps * factor * scale`; inf where exact values differ."""
    actual, wanted = actual.reshape(-1), wanted.reshape(-1)
    if not actual.dtype.is_floating_point:
        return 0.0 if torch.equal(actual.double(), wanted.double()) else math.inf
    info = torch.finfo(actual.dtype)
    finite = torch.isfinite(wanted.to(actual.dtype).double())
    sizes = wanted[finite].double().abs()
    unit = max(float(sizes.max()) if sizes.numel() else 0.0, info.smallest_normal)
    rms = unit * math.sqrt(float((sizes / unit).square().mean()) if sizes.numel() else 0.0)
    least = NEGLIGIBLE.get(str(actual.dtype).removeprefix("torch."), 0.0) * max(1.0, unit)
    worst = off = 0.0
    for low in range(0, actual.numel(), _CHUNK):
        part = slice(low, low + _CHUNK)
        have, want, real = actual[part].double(), wanted[part].double(), finite[part]
        size = want.abs() + rms if scale is None else scale.reshape(-1)[part].double()
        bound = (size.clamp(min=info.smallest_normal) * info.eps * factor).clamp(min=least)
        gap = (have - want).abs().nan_to_num(nan=math.inf)
        rounded = want.to(actual.dtype).double()
        same = (have == rounded) | (have.isnan() & rounded.isnan())
        ratio = (gap / bound).nan_to_num(nan=0.0)  # no error where none is allowed
        ratio = torch.where(real, ratio, torch.where(same, 0.0, math.inf))
        worst = max(worst, float(ratio.max()))
        off += float((torch.where(real, gap, 0.0) / unit).square().sum())
    norm = info.eps * factor * math.sqrt(float((sizes / unit).square().sum()))
    if scale is None and rms > max(info.smallest_normal, least) and math.sqrt(off) > norm:
        worst = max(worst, math.sqrt(off) / norm if norm else math.inf)
    return worst
