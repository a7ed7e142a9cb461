"""Rules for Python modules, by their syntax tree: a tripwire that never decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.static.case import Finding, Rule
from gpu_runner.data.static.module_case import ModuleCase, Unparsed
from gpu_runner.data.static.rules import by_line, raised_by, source_suspicions
from gpu_runner.data.static.torch_rules import METHODS, OPERATIONS
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, Language

_OWN = re.compile(
    r"triton\.(?:jit|autotune)|numba\.(?:n?jit|vectorize|guvectorize|stencil|cuda\.jit)"
    r"|(?:.*\.)?load_inline|cutlass\.cute\.(?:kernel|jit)|cuda\.tile\.kernel"
)
_STATE = re.compile(
    r"torch\.(?:backends\..*|set_\w+|manual_seed|use_deterministic_algorithms|random\..*"
    r"|cuda\.(?:set_\w+|manual_seed\w*|memory\.(?:change|set)\w+|CUDAPluggableAllocator)"
    r"|library\..*|_dynamo\.config.*|overrides\..*|utils\._python_dispatch\..*)"
)
_RUNNER = re.compile(
    r"(?:gpu_runner|gc|inspect|ctypes|_ctypes|builtins|importlib|marshal|mmap|__main__|cffi|runpy"
    r"|sys\.(?:modules|_getframe|_current_frames|settrace|setprofile|meta_path|path_hooks))(?:\..*)?"
)
_INNER = re.compile(
    r"__(?:code|globals|closure|subclasses|builtins|dict|self)__|f_(?:back|locals|globals|builtins)"
    r"|gi_frame|tb_frame"
)
_BUILTINS = {"eval", "exec", "compile", "__import__", "globals", "locals", "vars", "breakpoint"}
_PROCESSES = re.compile(
    r"(?:threading|_thread|multiprocessing|concurrent|subprocess|asyncio|signal|atexit|pty|sched"
    r"|torch\.multiprocessing|weakref\.finalize"
    r"|os\.(?:fork|forkpty|exec\w+|spawn\w+|posix_spawn\w*|system|popen|kill\w*|register_at_fork|nice"
    r"|sched_\w+|_exit|abort))(?:\..*)?"
)
_FILES = re.compile(
    r"(?:shutil|tempfile|pathlib|pickle|dbm|shelve|sqlite3|fcntl"
    r"|os\.(?:open|read|write|pread|pwrite|dup\w*|remove|unlink|rename|replace|mkdir|makedirs|listdir"
    r"|scandir|walk|memfd_create|pipe\w*|sendfile|truncate|chmod)|io\.open"
    r"|torch\.(?:save|load|from_file)|numpy\.(?:save\w*|load\w*|memmap|fromfile))(?:\..*)?"
)
_NETWORK = re.compile(
    r"(?:socket|socketserver|ssl|http|urllib\d?|ftplib|requests|httpx\d?|aiohttp|xmlrpc|smtplib"
    r"|huggingface_hub|torch\.hub|torch\.distributed|os\.environ\[.*proxy)(?:\..*)?"
)


def _library(case: ModuleCase) -> Iterator[Finding]:
    if case.task.libraries:
        return
    if not any(_OWN.fullmatch(name) for name, _ in case.uses()):
        sentence = "has no kernel of its own: it only calls libraries, which this task does not"
        yield Finding("", 1, f"{sentence} allow")
    yield from _torch_calls(case)
    for node in case.nodes:
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield _of_torch("@", node.lineno)


def _torch_calls(case: ModuleCase) -> Iterator[Finding]:
    built = set(_built(case))
    for call, name in case.calls():
        operation = name.rpartition(".")[2]
        method = ""
        if isinstance(call.func, ast.Attribute) and not name:
            method = "" if _last(call.func.value) in built else call.func.attr
        if name.startswith("torch.") and _computes(name, operation):
            yield _of_torch(name, call.lineno)
        elif METHODS.fullmatch(method):
            yield _of_torch(f"Tensor.{method}", call.lineno)


def _built(case: ModuleCase) -> Iterator[str]:
    """Names under which a module keeps extensions that it has compiled."""
    for node in case.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if _OWN.fullmatch(case.dotted(node.value.func)):
            yield from map(_last, node.targets)


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _computes(name: str, operation: str) -> bool:
    of_library = name.startswith(("torch.nn.functional.", "torch.linalg.", "torch.ops."))
    return name == "torch.compile" or of_library or OPERATIONS.fullmatch(operation) is not None


def _of_torch(name: str, line: int) -> Finding:
    return Finding(name, line, f"calls torch's own {name!r}, which this task does not allow")


def _patches(case: ModuleCase) -> Iterator[Finding]:
    """Other modules' members that are set or deleted, which everybody in the process sees."""
    for target in _targets(case):
        place = target.value if isinstance(target, ast.Subscript) else target
        name = case.dotted(place) if isinstance(place, ast.Attribute) else ""
        if name and not _STATE.fullmatch(name) and name != "os.environ":
            yield Finding(name, target.lineno, f"changes {name!r} of another module")
    for call, _ in case.calls():
        changes = isinstance(call.func, ast.Name) and call.func.id in ("setattr", "delattr")
        if changes and call.args and (name := case.dotted(call.args[0])):
            yield Finding(name, call.lineno, f"changes a member of {name!r}")


def _targets(case: ModuleCase) -> Iterator[ast.expr]:
    """What a module sets or deletes."""
    for node in case.nodes:
        if isinstance(node, ast.Assign | ast.Delete):
            yield from node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            yield node.target


def _interpreter(case: ModuleCase) -> Iterator[Finding]:
    yield from _named(case, _RUNNER, "reaches into the interpreter by {!r}")
    for node in case.nodes:
        if isinstance(node, ast.Attribute) and _INNER.fullmatch(node.attr):
            yield Finding(node.attr, node.lineno, f"reaches into the interpreter by {node.attr!r}")
    for call, _ in case.calls():
        if isinstance(call.func, ast.Name) and call.func.id in _BUILTINS:
            name = call.func.id
            yield Finding(name, call.lineno, f"runs code, or looks at names, by {name!r}")


def _state(case: ModuleCase) -> Iterator[Finding]:
    yield from _named(case, _STATE, "{!r} changes torch for everybody in the process")


def _processes(case: ModuleCase) -> Iterator[Finding]:
    yield from _named(case, _PROCESSES, "starts threads or programs, or outlives a call, by {!r}")


def _files(case: ModuleCase) -> Iterator[Finding]:
    yield from _named(case, _FILES, "reads or writes files by {!r}")
    for call, _ in case.calls():
        if isinstance(call.func, ast.Name) and call.func.id == "open":
            yield Finding("open", call.lineno, "reads or writes files by 'open'")


def _network(case: ModuleCase) -> Iterator[Finding]:
    yield from _named(case, _NETWORK, "names the network's {!r}")


def _sleeps(case: ModuleCase) -> Iterator[Finding]:
    pattern = re.compile(r"time\.sleep|torch\.cuda\._sleep")
    yield from _named(case, pattern, "rests by {!r}, which lets a device cool down")


def _named(case: ModuleCase, pattern: re.Pattern[str], sentence: str) -> Iterator[Finding]:
    for name, line in (*case.imports.items(), *case.uses()):
        if pattern.fullmatch(name):
            yield Finding(name, line, sentence.format(name))


MODULE_RULES = (
    Rule(
        "python-library",
        "modules without a kernel of their own, and torch's operations that compute, unless the "
        "task allows libraries",
        _library,
    ),
    Rule("python-patches", "members of other modules that are set or deleted", _patches),
    Rule(
        "python-interpreter",
        "the runner's modules, sys.modules, frames, code objects, ctypes, eval and exec",
        _interpreter,
    ),
    Rule("python-state", "torch's global settings, generators and dispatcher", _state),
    Rule("python-processes", "threads, other processes and programs, exit handlers", _processes),
    Rule("python-files", "files opened, read or written", _files),
    Rule("python-network", "sockets, clients of the web, hubs of models", _network),
    Rule("python-sleeps", "sleeps, on the host or on a GPU", _sleeps),
)
"""Every rule for Python, in the order of the manual."""


def only_calls_libraries(source: str, task: Task) -> str:
    """A sentence where a module has no kernel of its own and the task asks for one; else empty."""
    try:
        found = _library(ModuleCase.read(source, task))
    except Unparsed:
        return ""
    return next((finding.sentence for finding in found if not finding.subject), "")


def module_suspicions(source: str, task: Task) -> tuple[Suspicion, ...]:
    """What a person should look at in a module, by line, as `by_line` has it.

    C++ and CUDA in its strings are read as sources of a torch extension are, without macros.
    """
    try:
        case = ModuleCase.read(source, task)
    except Unparsed:
        return (Suspicion(check=Check.SOURCE, reason="macros: it cannot be read as Python"),)
    found = list(raised_by(MODULE_RULES, case))
    for text, line in case.texts():
        language = Language.CUDA if "__global__" in text else Language.CPP
        inner = source_suspicions(text, [text], language, Abi.TORCH, task)
        found += [replace(s, line=(s.line or 1) + line - 1) for s in inner]
    return by_line(found)
