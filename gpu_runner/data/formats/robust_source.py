"""What can be read of a robust-kbench function file without executing it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_runner.data.codec import DataError, refuse
from gpu_runner.data.formats.source import (
    classes,
    functions,
    keyword_errors,
    literal_defaults,
    method,
    parameter_names,
    parse_module,
)
from gpu_runner.data.verdict import Direction

Parameters = dict[str, dict[str, object]]
"""Of one workload: {"init": keyword arguments of Model, "inputs": those of get_inputs}."""


@dataclass(frozen=True)
class RobustSource:
    """The parts of func_forward.py or func_backward.py that the loader looks at.

    backward_call: the names of the values that `AutogradFunction.backward` hands to
    `backward_fn`, or none where they cannot be read.
    """

    direction: Direction
    forward_fn: ast.FunctionDef
    get_inputs: ast.FunctionDef
    init: ast.FunctionDef | None
    backward_call: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, direction: Direction) -> RobustSource:
        """Read a file's text; raises `DataError` (field: the file) where a part is missing."""
        name = f"func_{direction}.py"
        tree = parse_module(text, name)
        own, models = functions(tree), classes(tree)
        for wanted in ("forward_fn", "get_inputs"):
            if wanted not in own:
                raise DataError(name, f"must define the function {wanted}()")
        if "Model" not in models:
            raise DataError(name, "must define the class Model")
        forward = method(models["Model"], "forward")
        if forward is None or "fn" not in parameter_names(forward):
            raise DataError(name, "Model.forward() must take the function that it calls as `fn`")
        return cls(
            direction,
            own["forward_fn"],
            own["get_inputs"],
            method(models["Model"], "__init__"),
            _backward_call(models, name) if direction is Direction.BACKWARD else (),
        )

    @property
    def docstring(self) -> str:
        """The reference's own account of itself, or nothing."""
        return inspect.cleandoc(ast.get_docstring(self.forward_fn) or "")

    def accepted(self, init: Mapping[str, object], inputs: Mapping[str, object]) -> Parameters:
        """A configuration without the keys that its function does not take.

        The benchmark's own folders have such keys, left over from earlier versions.
        """
        return {"init": _taken(self.init, init), "inputs": _taken(self.get_inputs, inputs)}

    def check(self, parameters: Parameters, inputs_field: str, init_field: str) -> None:
        """Refuse parameters with which Model or get_inputs cannot be called."""
        refuse(self.errors(parameters, inputs_field, init_field))

    def errors(
        self, parameters: Parameters, inputs_field: str, init_field: str
    ) -> Iterator[DataError]:
        """Parameters with which Model or get_inputs cannot be called."""
        yield from keyword_errors(self.get_inputs, parameters["inputs"], inputs_field)
        if self.init is not None:
            yield from keyword_errors(self.init, {"self", *parameters["init"]}, init_field)

    def with_defaults(self, parameters: Parameters) -> Parameters:
        """The same parameters with the defaults of Model and get_inputs spelt out."""
        init = literal_defaults(self.init) if self.init is not None else {}
        return {
            "init": {**init, **parameters["init"]},
            "inputs": {**literal_defaults(self.get_inputs), **parameters["inputs"]},
        }

    def call_description(self) -> str:
        """A sentence for authors: what a kernel is called with."""
        if self.direction is Direction.FORWARD:
            names = parameter_names(self.forward_fn)
            return (
                f"The extension exports `forward({', '.join(names)})`, called with what `Model` "
                "passes to its function: inputs and weights, by position."
            )
        arguments = ", ".join(self.backward_call) or "..."
        return (
            f"The extension exports `backward({arguments})`, called with what "
            "`AutogradFunction.backward` passes to `backward_fn`, and returns the gradients "
            "that it expects."
        )


def _backward_call(models: Mapping[str, ast.ClassDef], name: str) -> tuple[str, ...]:
    function = models.get("AutogradFunction")
    backward = method(function, "backward") if function is not None else None
    if function is None or backward is None or method(function, "forward") is None:
        raise DataError(name, "must define the class AutogradFunction with forward and backward")
    for node in ast.walk(backward):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "backward_fn"
        ):
            return tuple(ast.unparse(argument) for argument in node.args)
    raise DataError(name, "AutogradFunction.backward() does not call backward_fn()")


def _taken(function: ast.FunctionDef | None, given: Mapping[str, object]) -> dict[str, object]:
    if function is None:
        return {}
    if function.args.kwarg is not None:
        return dict(given)
    names = parameter_names(function)
    return {name: value for name, value in given.items() if name in names}
