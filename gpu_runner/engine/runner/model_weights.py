"""The weights of a submission's model: in this judge they are arguments, new at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from gpu_runner.data.wire import ErrorCode
from gpu_runner.engine.problem.arguments import Described, tensor_entries
from gpu_runner.engine.runner.returned import CallError

_SHOWN = 3  # chosen: of a message for a person


def hold_still(model: nn.Module) -> nn.Module:
    """The model with no dropout, and with running statistics that stay as they are."""
    for part in model.modules():
        if isinstance(part, _DropoutNd | nn.RReLU):
            part.eval()  # a random reference could not be matched
        elif isinstance(part, _NormBase):
            part.momentum = 0.0  # the same work
        elif isinstance(part, nn.RNNBase | nn.MultiheadAttention):
            part.dropout = 0.0
    return model


def as_json(value: object) -> object:
    """A plain argument of a model, so that a tuple does not become a list. Raises `TypeError`."""
    if isinstance(value, tuple):
        return {"tuple": [as_json(item) for item in value]}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} is not a plain value")


def plain_of(value: object) -> object:
    """What `as_json` was given."""
    if isinstance(value, dict):
        return tuple(map(plain_of, value["tuple"]))
    return [plain_of(item) for item in value] if isinstance(value, list) else value


class Weights:
    """Puts a call's weights where a model has its own.

    By name where the model has parameters of these names and shapes; else one after the other,
    where the shapes of all are the same. Parameters keep being the same objects: only what they
    hold is another. A model may change its buffers: on a CPU they are memory of its own from the
    start, and on a device `fill` copies them, once the call's inputs are there.
    """

    def __init__(
        self,
        model: Callable[..., object],
        told: dict[str, Any],
        given: list[Described],
        device: str,
    ) -> None:
        """`told` is the oracle's account of the task's own model, `given` describes the arguments.

        Raises `CallError` (SYMBOL) where a parameter has no place in the model.
        """
        self._inputs: int = told["inputs"]
        names: list[str] = told.get("parameters", [])
        buffers: list[str] = told.get("buffers", [])
        attributes: list[str] = told.get("attributes", [])
        states = given[self._inputs : self._inputs + len(names)]
        shapes = {n: tuple(entry["shape"]) for n, entry in zip(names, states, strict=True)}
        is_model = isinstance(model, nn.Module)
        self._parameters = _matched(model, shapes) if isinstance(model, nn.Module) else []
        if shapes and not is_model:
            raise CallError(ErrorCode.SYMBOL, "ModelNew is not a torch.nn.Module with parameters")
        own = dict(model.named_buffers()) if isinstance(model, nn.Module) else {}
        self._buffers = [own.get(name) for name in buffers]
        self._model, self._attributes = model, attributes
        self._coming: list[tuple[Tensor, Tensor]] = []
        self._copies = device != "cpu"
        first = len(tensor_entries(given[: self._inputs])) + len(names)
        self.owned = frozenset(range(first, first + len(buffers)))
        """Numbers of the buffers among the tensors that a call reads."""

    def put(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put the weights in place; the inputs of the call."""
        rest = iter(arguments[self._inputs :])
        for parameter in self._parameters:
            parameter.data = next(rest)
        pairs = [(buffer, next(rest)) for buffer in self._buffers]
        self._coming = [(buffer, value) for buffer, value in pairs if buffer is not None]
        if not self._copies:
            for buffer, value in self._coming:
                buffer.data = value
            self._coming = []
        for name in self._attributes:
            _set(self._model, name, next(rest))
        return arguments[: self._inputs]

    def fill(self) -> None:
        """Copy what the buffers are to hold."""
        for buffer, value in self._coming:
            buffer.copy_(value)


def _matched(model: nn.Module, wanted: dict[str, tuple[int, ...]]) -> list[nn.Parameter]:
    """The model's parameters in the order of those of the task's model."""
    own = dict(model.named_parameters(remove_duplicate=False))
    if all(name in own and tuple(own[name].shape) == shape for name, shape in wanted.items()):
        return [own[name] for name in wanted]
    filled = [parameter for parameter in own.values() if parameter.numel()]  # "no bias" is empty
    for those in (list(own.values()), filled):
        if [tuple(parameter.shape) for parameter in those] == list(wanted.values()):
            return those
    lacking = [n for n, s in wanted.items() if n not in own or tuple(own[n].shape) != s]
    shown = ", ".join(f"{name!r} {list(wanted[name])}" for name in lacking[:_SHOWN])
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    raise CallError(
        ErrorCode.SYMBOL,
        f"ModelNew has no place for parameters of Model: {shown}{more}; "
        "they are matched by name and shape, or else in order where all shapes agree",
    )


def _set(model: object, name: str, value: Tensor) -> None:
    """Set a tensor that a model keeps as a plain attribute, where it has such a one."""
    *parts, last = name.split(".")
    for part in parts:
        model = getattr(model, part, None)
    if isinstance(getattr(model, last, None), Tensor):
        setattr(model, last, value)
