"""Follows a KernelBench file with shapes in the place of tensors. Nothing of it is executed.

A small part of Python is interpreted over the syntax tree, and what torch does is known as far as
shapes go. Whatever is not known, or would fail, ends in `Unfollowed`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from gpu_runner.data.formats.follow.program import Program
from gpu_runner.data.formats.follow.statements import arguments_of
from gpu_runner.data.formats.follow.values import (
    Class,
    Function,
    Shape,
    Tensor,
    Unfollowed,
    Unknown,
    few,
)
from gpu_runner.data.formats.init_inputs import InitCall, init_calls

__all__ = ["Followed", "Tensor", "Unfollowed", "Unknown"]


class Followed:
    """A problem file whose module has been followed, with other values for some of its globals."""

    def __init__(self, tree: ast.Module, changes: Mapping[str, Any] | None = None) -> None:
        """Follow the module."""
        self._program = Program(tree, changes or {})
        self._names = self._program.module.names

    @property
    def names(self) -> Mapping[str, Any]:
        """The module's globals; what of them is not known is an `Unknown`."""
        return self._names

    def inputs(self, sizes: Mapping[str, Any]) -> Any:
        """What get_inputs() gives where it sees these globals; all others see the file's own.

        Raises `Unfollowed` where that cannot be told.
        """
        own = {name: self._names[name] for name in sizes}
        self._names.update(sizes)
        try:
            return self._program.call(self._names["get_inputs"], (), {})
        finally:
            self._names.update(own)

    def shapes(self, sizes: Mapping[str, Any]) -> list[Shape]:
        """Shapes of the tensors among `inputs`."""
        return [each.shape for each in _tensors(self.inputs(sizes))]

    def init_inputs(self) -> Any:
        """What get_init_inputs() gives; raises `Unfollowed` where that cannot be told."""
        return self._program.call(self._names["get_init_inputs"], (), {})

    def fits(self, call: InitCall) -> bool:
        """Whether Model takes these arguments, as far as their number and names go."""
        return self._takes("__init__", call)

    def takes(self, inputs: tuple[Any, ...]) -> bool:
        """Whether Model's forward() takes so many inputs."""
        return self._takes("forward", InitCall(inputs))

    def _takes(self, method: str, call: InitCall) -> bool:
        model = self._names["Model"]
        if not isinstance(model, Class) or any(isinstance(b, Unknown) for b in model.lineage()):
            return True
        try:
            called = model.find(method)
        except KeyError:
            return not model.is_module or not call.values()
        if not isinstance(called, Function) or called.decorators:
            return True
        try:
            arguments_of(called, (model, *call.arguments), call.keywords)
        except Unfollowed:
            return False
        return True

    def outputs(self, sizes: Mapping[str, Any]) -> list[Shape]:
        """Shapes of what Model gives for `inputs`.

        Raises `Unfollowed` unless it surely takes them.
        """
        ways = init_calls(self.init_inputs(), self.fits)
        if not ways:
            raise Unfollowed("arguments that Model does not take")
        model = self._program.call(self._names["Model"], ways[0].arguments, ways[0].keywords)
        inputs = self.inputs(sizes)
        if not isinstance(inputs, tuple | list):
            raise Unfollowed("inputs that are no list")
        return [each.shape for each in _tensors(self._program.call(model, tuple(inputs), {}))]


def _tensors(values: Any) -> list[Tensor]:
    """The tensors in values, which are otherwise numbers and texts."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, tuple | list | dict):
        inner = values.values() if isinstance(values, dict) else values
        return list(few([each for value in few(list(inner)) for each in _tensors(value)]))
    if isinstance(values, Unknown) or not isinstance(values, int | float | str | None):
        raise Unfollowed("a value that is not known")
    return []
