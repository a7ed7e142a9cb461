"""Names that a reference.py asks for and nobody gives, where its text alone says so for certain.

The engine looks up every argument by its name (`native_problem`, `arguments`):
among what `make_inputs` returns, then among the workload's parameters, then among defaults.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.source import functions
from gpu_runner.data.signature import CParameter, Role, argument_name
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, Direction

_GIVEN = {Direction.FORWARD: frozenset[str](), Direction.BACKWARD: {"grad_output", "output"}}
"""What the engine adds to the values of `make_inputs`."""
_OF_SCALES = frozenset({"inner_eps"})
_REBINDING = frozenset(
    {"__import__", "delattr", "eval", "exec", "globals", "locals", "setattr", "vars"}
)
"""With one of these, a module's names may mean anything."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def name_errors(task: Task, tree: ast.Module, file: str) -> Iterator[DataError]:
    """What the reference's functions and the signature need and do not get.

    Only where every `return` of `make_inputs` lists its names, no function is decorated or bound
    twice, and no other file names the module: whatever the engine would take is taken. `file`:
    name of the module.
    """
    others = (text for name, text in task.files.items() if name.endswith(".py") and name != file)
    plain = {} if any(file.removesuffix(".py") in text for text in others) else _certain(tree)
    drawn = _returned(plain["make_inputs"]) if "make_inputs" in plain else None
    if drawn is None or "forward_fn" not in plain:
        return
    check = _Names(task, file, plain, drawn)
    yield from check.forward()
    if Direction.BACKWARD in task.directions and "backward_fn" in plain:
        yield from check.of("backward_fn", Direction.BACKWARD, frozenset())
    for direction in task.directions:
        scale, function = f"{direction.value}_scale", f"{direction.value}_fn"
        if scale in plain and function in plain:
            also = _OF_SCALES | {argument_name(a.arg) for a in _every(plain[function])}
            yield from check.of(scale, direction, also)
    if task.abi is Abi.C:
        yield from check.signature()


@dataclass(frozen=True)
class _Names:
    """A task, and what its reference.py says for certain."""

    task: Task
    file: str
    plain: dict[str, ast.FunctionDef]
    drawn: frozenset[str]

    def forward(self) -> Iterator[DataError]:
        """What forward_fn lacks; gradients are drawn in the shape of what it returns."""
        yield from self._function("forward_fn", self._workloads(*self.task.directions), self.drawn)

    def of(self, name: str, direction: Direction, also: frozenset[str]) -> Iterator[DataError]:
        """What another function lacks, which gets what is in `also` as well."""
        known = self.drawn | _GIVEN[direction] | also
        yield from self._function(name, self._workloads(direction), known)

    def signature(self) -> Iterator[DataError]:
        """What the signature's parameters lack; outputs need nothing."""
        try:
            parameters = self.task.c_signature.parameters
        except DataError:  # `Task.errors` says so
            return
        known = self.drawn | _defaults(self.plain["forward_fn"])
        for parameter in parameters:
            if parameter.role is Role.OUTPUT or parameter.name in known:
                continue
            if parameter.role is Role.SCALAR:
                yield from self._scalar(parameter)
            else:
                reason = f"has the tensor {parameter.name!r}, which make_inputs() does not return"
                yield DataError("signature", reason)

    def _scalar(self, parameter: CParameter) -> Iterator[DataError]:
        name, workloads = parameter.name, self._workloads(Direction.FORWARD)
        lacking = [index for index in workloads if name not in self._parameters(index)]
        if workloads and len(lacking) == len(workloads):
            reason = (
                f"has the number {name!r}, which neither make_inputs() nor any workload provides"
            )
            yield DataError("signature", reason)
            return
        for index in workloads:
            field = f"workloads[{index}].parameters.{name}"
            if index in lacking:
                yield DataError(field, "is missing: the signature needs it")
            elif not isinstance(self._parameters(index)[name], int | float):
                yield DataError(
                    field, f"must be a number: the signature declares it as {parameter.ctype}"
                )

    def _function(
        self, name: str, workloads: list[int], known: frozenset[str]
    ) -> Iterator[DataError]:
        function = self.plain[name]
        for argument in _extraordinary(function):
            reason = f"has {name}(), whose {argument!r} must be an ordinary parameter"
            yield DataError(self.file, reason, function.lineno)
        known |= _defaults(function)
        for wanted in (argument_name(argument.arg) for argument in function.args.args):
            if wanted in known:
                continue
            lacking = [index for index in workloads if wanted not in self._parameters(index)]
            if lacking and len(lacking) == len(workloads):
                takes = f"has {name}(), which takes {wanted!r}"
                reason = f"{takes}, but neither make_inputs() nor any workload provides it"
                yield DataError(self.file, reason, function.lineno)
            else:
                for index in lacking:
                    field = f"workloads[{index}].parameters.{wanted}"
                    yield DataError(field, f"is missing: {name}() needs it")

    def _workloads(self, *directions: Direction) -> list[int]:
        """Places of the workloads of these directions."""
        every = enumerate(self.task.workloads)
        return [index for index, one in every if set(directions) & set(one.directions)]

    def _parameters(self, index: int) -> dict[str, object]:
        return dict(self.task.workloads[index].parameters)


def _every(function: ast.FunctionDef) -> list[ast.arg]:
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _extraordinary(function: ast.FunctionDef) -> list[str]:
    """Parameters that cannot be given both by place and by name."""
    arguments = function.args
    starred = [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
    return [arg.arg for arg in (*arguments.posonlyargs, *arguments.kwonlyargs, *starred)]


def _defaults(function: ast.FunctionDef) -> frozenset[str]:
    """Names of the ordinary parameters that have a default."""
    arguments = function.args.args
    count = min(len(function.args.defaults), len(arguments))
    return frozenset(argument_name(arg.arg) for arg in arguments[len(arguments) - count :])


def _returned(make_inputs: ast.FunctionDef) -> frozenset[str] | None:
    """Every name that it may return; None where that cannot be read."""
    names: set[str] = set()
    nodes = list(_own(make_inputs))
    returns = [node.value for node in nodes if isinstance(node, ast.Return)]
    if not returns or any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes):
        return None
    for value in returns:
        for key in value.keys if isinstance(value, ast.Dict) else [None]:
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                return None
            names.add(key.value)
    return frozenset(names)


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions and classes inside it."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _Scope):
            stack += ast.iter_child_nodes(node)


def _certain(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """The module's functions that are what their definition says whenever they are called."""
    nodes = list(ast.walk(tree))
    if any(_may_rebind(node) for node in nodes):
        return {}
    bound = Counter(name for node in nodes for name in _bound(node))
    handled = {node.id for node in _at_import(tree) if isinstance(node, ast.Name)}
    return {
        name: function
        for name, function in functions(tree).items()
        if not function.decorator_list and bound[name] == 1 and name not in handled
    }


def _may_rebind(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name):
            return name in _REBINDING
        case ast.Attribute(attr=name):  # a function's own attributes may be set: its defaults
            return name in ("modules", "__dict__") or not isinstance(node.ctx, ast.Load)
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return True
    return False


def _bound(node: ast.AST) -> list[str]:
    """Names that a node binds or unbinds, in whatever scope."""
    match node:
        case ast.Name(id=name) if not isinstance(node.ctx, ast.Load):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [(alias.asname or alias.name).split(".")[0] for alias in aliases]
        case ast.Global(names=names):
            return names
        case ast.ExceptHandler(name=str() as name) | ast.MatchMapping(rest=str() as name):
            return [name]
        case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
            return [name]
        case _ if isinstance(node, _Definition):
            return [node.name]
    return []


def _at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """What is evaluated on import, but for the bodies of functions and their defaults."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            for decorator in statement.decorator_list:
                yield from ast.walk(decorator)
        else:
            yield from ast.walk(statement)
