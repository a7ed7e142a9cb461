"""See what a robust-kbench model passes to its function, and its autograd class to backward_fn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gpu_runner.engine.problem.problem import ProblemError, outputs_of
from gpu_runner.engine.problem.seeding import reseed

_MOST_GRADIENTS = 64  # chosen: many times what a function returns


class _Captured(Exception):
    """Ends a call as soon as its arguments are known."""

    def __init__(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        super().__init__()
        self.arguments = arguments
        self.keywords = keywords


def _capture(*arguments: object, **keywords: object) -> object:
    raise _Captured(arguments, keywords)


def forward_arguments(
    model: Any, inputs: tuple[Any, ...], forward_fn: Callable[..., Any]
) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Names and values of what `model` passes to its function, by position."""
    try:
        model.forward(*inputs, fn=_capture)
    except _Captured as captured:
        signature = inspect.signature(forward_fn)
        bound = signature.bind(*captured.arguments, **captured.keywords)
        if bound.kwargs:
            bound.apply_defaults()  # a keyword may follow a parameter that was left out
        if bound.kwargs:
            raise ProblemError("forward_fn must take all its arguments by position") from None
        return tuple(bound.arguments), bound.args
    raise ProblemError("Model.forward does not call the function that it is given as `fn`")


class _Context:
    """Stands in for autograd's ctx, so that both halves can be called by hand."""

    def __init__(self, arguments: tuple[object, ...]) -> None:
        self.saved_tensors: tuple[object, ...] = ()
        self.needs_input_grad = tuple(_differentiable(value) for value in arguments)

    def save_for_backward(self, *tensors: object) -> None:
        self.saved_tensors = tensors

    def mark_dirty(self, *tensors: object) -> None:
        raise ProblemError("AutogradFunction changes its inputs")

    def mark_non_differentiable(self, *tensors: object) -> None:
        """Nothing to note: gradients come from the reference itself."""

    def set_materialize_grads(self, _: object) -> None:
        """Nothing to note: every output has a gradient here."""


def _differentiable(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


@dataclass(frozen=True)
class BackwardCall:
    """What a backward kernel gets, and for which arguments of forward it returns gradients.

    output_gradients: the random gradients of the outputs. targets: for each of the kernel's
    outputs in order, the position of forward's argument whose gradient it is.
    """

    arguments: tuple[object, ...]
    output_gradients: tuple[Tensor, ...]
    targets: tuple[int, ...]


def backward_call(function: Any, arguments: tuple[Any, ...], seed: int) -> BackwardCall:
    """Run both halves of `function`, an autograd class, on the arguments of its forward."""
    context = _Context(arguments)
    outputs = outputs_of(_forward(function, context, arguments))
    reseed(seed)
    gradients = tuple(torch.randn_like(output) for output in outputs)
    function.backward_fn = _capture
    try:
        function.backward(context, *gradients)
    except _Captured as captured:
        if captured.keywords:
            raise ProblemError("backward_fn must get all its arguments by position") from None
        targets = _targets(function, context, gradients, len(arguments))
        return BackwardCall(captured.arguments, gradients, targets)
    raise ProblemError("AutogradFunction.backward does not call backward_fn")


def _forward(function: Any, context: _Context, arguments: tuple[Any, ...]) -> Any:
    if function.setup_context is torch.autograd.Function.setup_context:
        return function.forward(context, *arguments)
    outputs = function.forward(*arguments)
    function.setup_context(context, arguments, outputs)
    return outputs


def _targets(
    function: Any, context: _Context, gradients: tuple[Tensor, ...], count: int
) -> tuple[int, ...]:
    """Try how many results `backward` unpacks, and look where it puts each of them."""
    for results in range(_MOST_GRADIENTS):  # 0 stands for one that is not in a tuple
        marks = tuple(torch.zeros(()) for _ in range(max(results, 1)))
        answer = marks[0] if results == 0 else marks
        function.backward_fn = lambda *_, answer=answer: answer
        try:
            returned = function.backward(context, *gradients)
        except (ValueError, TypeError, IndexError, AttributeError, RuntimeError):
            continue  # unpacks another number of results
        returned = returned if isinstance(returned, tuple | list) else (returned,)
        if len(returned) == count:
            return tuple(_position(returned, mark) for mark in marks)
    raise ProblemError("AutogradFunction.backward must return backward_fn's results as gradients")


def _position(returned: tuple[object, ...] | list[object], mark: Tensor) -> int:
    for position, value in enumerate(returned):
        if value is mark:
            return position
    raise ProblemError("AutogradFunction.backward changes or drops a result of backward_fn")
