"""Rules for Python modules, by their syntax tree: a tripwire that never decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.python_source import imported_nodes, tree_of
from gpu_runner.data.static.case import Code, Finding, Rule
from gpu_runner.data.static.module_names import PLAIN, Beside, harmless
from gpu_runner.data.static.rules import by_line, code_suspicions, raised_by, source_suspicions
from gpu_runner.data.task import Task
from gpu_runner.data.torch_operations import NAMESPACES, computes
from gpu_runner.data.verdict import Abi

_TEXT_MARKS = ("PYBIND11_MODULE", "__global__", "#include", "torch::Tensor", 'extern "C"')


class Unparsed(Exception):
    """The source is no Python that can be read here."""


@dataclass(frozen=True)
class ModuleCase:
    """One module with the task that it is for.

    beside: the other files of its submission. is_helper: it is one of them, and not the entry.
    """

    tree: ast.Module
    task: Task
    beside: Beside = field(default_factory=Beside)
    is_helper: bool = False

    @classmethod
    def read(cls, source: str, task: Task) -> ModuleCase:
        """Parse a source; nothing of it is executed. Raises `Unparsed`."""
        try:
            return cls(ast.parse(source), task)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise Unparsed from None

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of what an import runs, outer ones first."""
        return tuple(imported_nodes(self.tree))

    @cached_property
    def imports(self) -> dict[str, int]:
        """Full names of what is imported, with the line."""
        found: dict[str, int] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found.setdefault(alias.name, node.lineno)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    name = self.beside.origin(f"{node.module}.{alias.name}")
                    found.setdefault(name, node.lineno)
        return found

    @cached_property
    def _meanings(self) -> dict[str, str]:
        """What a name stands for, by the imports."""
        return self.beside.meanings(self.nodes)

    def dotted(self, node: ast.AST) -> str:
        """The full name of what an expression names, such as torch.nn.functional.relu; or empty.

        Of an import alone: a variable of the module's own has none.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._meanings:
            return ""
        return self.beside.origin(".".join([self._meanings[node.id], *reversed(parts)]))

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Every call, with the full name of what is called, where it has one."""
        for node in self.nodes:
            if isinstance(node, ast.Call):
                yield node, self.dotted(node.func)

    @cached_property
    def uses(self) -> Sequence[tuple[str, int]]:
        """Every full name that is used, with its line."""
        named = (node for node in self.nodes if isinstance(node, ast.Attribute | ast.Name))
        return [(name, node.lineno) for node in named if (name := self.dotted(node))]

    def texts(self) -> Iterator[tuple[str, int]]:
        """Strings that hold C++ or CUDA, with the line on which they begin."""
        for node in self.nodes:
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if any(mark in node.value for mark in _TEXT_MARKS):
                yield node.value, node.lineno


_OWN = re.compile(
    r"triton\.(?:runtime\.)?(?:jit|autotune)|triton\.experimental\.gluon\.jit|helion\.kernel"
    r"|tilelang\.(?:jit|language\.prim_func)|numba\.(?:n?jit|vectorize|guvectorize|stencil|cuda\.jit)"
    r"|(?:.*\.)?load_inline|torch\.utils\.cpp_extension\.load|cupyx?\.(?:Raw\w+|\w+Kernel|jit\.rawkernel)|cutlass\.cute\.(?:kernel|jit)|cuda\.tile\.kernel"
)
_TORCHS_OWN = re.compile(
    rf"torch\.(?:nn\.functional|linalg|fft|special|ops\.{NAMESPACES})\.(?!pad$)|torch\.compile\b"
)
_TORCH = re.compile(
    r"torch\.(?!no_grad|inference_mode|\w+_grad|[sg]et_|is_|device|dtype|tensor|as_|from_|frombuffer)([a-z]\w+)"
)
_STATE = re.compile(
    r"torch\.(?:backends\..*(?:allow|benchmark|determin|enable|precision|preferred|flags|set_)\w*"
    r"|set_(?!grad_enabled)\w+|use_deterministic_algorithms|random\..*"
    r"|cuda\.(?:set_(?!device\b)\w+|memory\.(?:change|set)\w+|CUDAPluggableAllocator)"
    r"|_dynamo\.config.*|overrides\..*|utils\._python_dispatch\..*)"
)
_TORCHS_NAME = re.compile(rf"{NAMESPACES}(?:::.*)?")
_RUNNER = re.compile(
    r"(?:gpu_runner|builtins|marshal|mmap|__main__|cffi|runpy|gc\.(?:callbacks|[gs]et_\w+)"
    r"|inspect\.(?:\w*frames?|stack|trace|getclosurevars)"
    r"|importlib\.(?:import_module|reload|machinery|abc|util\.(?:\w+_from_\w+|LazyLoader))"
    r"|sys\.(?:modules|_getframe|_current_frames|settrace|setprofile|meta_path|path_hooks))(?:\..*)?"
)
_INNER = re.compile(
    r"__(?:code|globals|closure|subclasses|builtins|dict|self)__|f_(?:back|locals|globals|builtins)"
    r"|gi_frame|tb_frame"
)
_BUILTINS = {"eval", "exec", "compile", "__import__", "globals", "locals", "vars", "breakpoint"}
_PROCESSES = re.compile(
    r"(?:multiprocessing|concurrent\.futures\.Process\w+|subprocess|asyncio|signal|atexit|pty|sched"
    r"|torch\.multiprocessing|weakref\.finalize"
    r"|os\.(?:fork|forkpty|exec\w+|spawn\w+|posix_spawn\w*|system|popen|kill\w*|register_at_fork|nice"
    r"|sched_set\w+|_exit|abort))(?:\..*)?"
)
_FILES = re.compile(
    r"(?:shutil|pickle|dbm|shelve|sqlite3|fcntl"
    r"|os\.(?:open|read|write|pread|pwrite|dup\w*|remove|unlink|rename|replace|listdir"
    r"|scandir|walk|memfd_create|pipe\w*|sendfile|truncate|chmod)|io\.open"
    r"|torch\.(?:save|load|from_file)|numpy\.(?:save\w*|load\w*|memmap|fromfile))(?:\..*)?"
)
_WRITTEN = {"'w'", "'x'"}
_OPENING = {"r", "rt", "utf-8", "utf8"}
_OF_PATHS = {"read_text", "read_bytes", "write_bytes"}
_DISTRIBUTED = re.compile(r"torch\.distributed\.\w+")
_NETWORK = re.compile(
    r"(?:socket|socketserver|ssl|http|urllib\d?|ftplib|requests|httpx\d?|aiohttp|xmlrpc|smtplib"
    r"|huggingface_hub|torch\.hub|torch\.distributed\.(?:init_\w+|rpc|elastic|launch|run|new_group|\w*Store)|os\.environ\[.*proxy)(?:\..*)?"
)


def _library(case: ModuleCase) -> Iterator[Finding]:
    if case.task.libraries:
        return
    if not case.is_helper and not any(map(_has_kernel, [case, *_helpers(case)])):
        sentence = "has no kernel of its own: it only calls libraries, which this task does not"
        yield Finding("", 1, f"{sentence} allow")
    yield from _torch_calls(case)
    for node in case.nodes:
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield _of_torch("@", node.lineno)


def _has_kernel(case: ModuleCase) -> bool:
    return any(_OWN.fullmatch(name) for name, _ in case.uses)


def _helpers(case: ModuleCase) -> Iterator[ModuleCase]:
    """The modules beside the entry that can be read."""
    for name, text in case.beside.texts.items():
        if name.endswith(".py") and isinstance(tree := tree_of(text), ast.Module):
            yield replace(case, tree=tree, is_helper=True)


def _torch_calls(case: ModuleCase) -> Iterator[Finding]:
    for call, name in case.calls():
        if _TORCHS_OWN.match(name) or ((m := _TORCH.fullmatch(name)) and computes(m[1])):
            yield _of_torch(name, call.lineno)


def _of_torch(name: str, line: int) -> Finding:
    return Finding(name, line, f"calls torch's own {name!r}, which this task does not allow")


def _patches(case: ModuleCase) -> Iterator[Finding]:
    """Other modules' members that are set or deleted, which everybody in the process sees."""
    for target, value in _targets(case):
        place = target.value if isinstance(target, ast.Subscript) else target
        name = case.dotted(place) if isinstance(place, ast.Attribute) else ""
        is_alias = all(map(_DISTRIBUTED.fullmatch, (name, case.dotted(value))))
        if name and not is_alias and not _STATE.fullmatch(name) and name != "os.environ":
            yield Finding(name, target.lineno, f"changes {name!r} of another module")
    for call, _ in case.calls():
        changes = isinstance(call.func, ast.Name) and call.func.id in ("setattr", "delattr")
        if changes and call.args and (name := case.dotted(call.args[0])):
            yield Finding(name, call.lineno, f"changes a member of {name!r}")


def _targets(case: ModuleCase) -> Iterator[tuple[ast.expr, ast.AST]]:
    """What a module sets or deletes, and to what; a deletion stands for itself."""
    for node in case.nodes:
        if isinstance(node, ast.Assign | ast.Delete):
            yield from ((target, getattr(node, "value", node)) for target in node.targets)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            yield node.target, node.value or node


def _interpreter(case: ModuleCase) -> Iterator[Finding]:
    fine = harmless(case.nodes, case.dotted)
    used = [node for node in case.nodes if id(node) not in fine]
    named = [(case.dotted(n), n.lineno) for n in used if isinstance(n, ast.Attribute | ast.Name)]
    inner = [(n.attr, n.lineno) for n in used if isinstance(n, ast.Attribute)]
    imports = [(name, line) for name, line in case.imports.items() if not PLAIN.fullmatch(name)]
    for pattern, names in ((_RUNNER, [*imports, *named]), (_INNER, inner)):
        for name, line in names:
            if pattern.fullmatch(name):
                yield Finding(name, line, f"reaches into the interpreter with {name!r}")
    for call, _ in case.calls():
        if isinstance(call.func, ast.Name) and call.func.id in _BUILTINS:
            name = call.func.id
            yield Finding(name, call.lineno, f"runs code, or looks up names, with {name!r}")


def _state(case: ModuleCase) -> Iterator[Finding]:
    sentence = "{!r} changes torch for the whole process"
    yield from _named(case, _STATE, sentence)
    for call, name in case.calls():
        words = [a.value for a in call.args if isinstance(a, ast.Constant)]
        if name.startswith("torch.library.") and any(_TORCHS_NAME.fullmatch(str(w)) for w in words):
            yield Finding(name, call.lineno, sentence.format(name))


def _processes(case: ModuleCase) -> Iterator[Finding]:
    yield from _named(case, _PROCESSES, "starts programs, or outlives a call, with {!r}")


def _files(case: ModuleCase) -> Iterator[Finding]:
    """Files that are found. What a process writes itself, such as sources, only it can read."""
    yield from _named(case, _FILES, "reads or writes files with {!r}")
    for call, _ in case.calls():
        named = isinstance(call.func, ast.Name) and call.func.id == "open"
        if _reads_own_file(call, case.beside.texts):
            continue
        if named and not _WRITTEN & {ast.unparse(mode) for mode in _modes(call)}:
            yield Finding("open", call.lineno, "reads or writes files with 'open'")
        if isinstance(call.func, ast.Attribute) and (name := call.func.attr) in _OF_PATHS:
            yield Finding(name, call.lineno, f"reads or writes files with {name!r}")


def _reads_own_file(call: ast.Call, files: Mapping[str, str]) -> bool:
    """Whether the only strings in it name files of the submission, or say how one is opened.

    A module is no text to be read: of what its comments say, no rule knows.
    """
    texts = [name for name in files if not name.endswith(".py")]
    words = {
        node.value
        for node in (ast.walk(call) if texts else ())
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    named = {part for name in texts for part in (name, *name.split("/"))}
    return bool(words & named) and words <= named | _OPENING


def _modes(call: ast.Call) -> list[ast.expr]:
    return [*call.args[1:2], *(given.value for given in call.keywords if given.arg == "mode")]


def _network(case: ModuleCase) -> Iterator[Finding]:
    yield from _named(case, _NETWORK, "uses the network with {!r}")


def _sleeps(case: ModuleCase) -> Iterator[Finding]:
    pattern = re.compile(r"time\.sleep|torch\.cuda\._sleep")
    yield from _named(case, pattern, "sleeps with {!r}, which lets a device cool down")


def _named(case: ModuleCase, pattern: re.Pattern[str], sentence: str) -> Iterator[Finding]:
    for name, line in (*case.imports.items(), *case.uses):
        if pattern.fullmatch(name):
            yield Finding(name, line, sentence.format(name))


MODULE_RULES = (
    Rule(
        "python-library",
        "modules without a kernel of their own, and torch operations that compute, unless the "
        "task allows libraries",
        _library,
    ),
    Rule("python-patches", "setting or deleting members of other modules", _patches),
    Rule(
        "python-interpreter",
        "the runner's modules, sys.modules, frames, code objects, eval and exec",
        _interpreter,
    ),
    Rule("python-state", "torch's global settings, generators and dispatcher", _state),
    Rule("python-processes", "other processes and programs, and exit handlers", _processes),
    Rule(
        "python-files",
        "reading, listing, moving or removing files, and storing data in them",
        _files,
    ),
    Rule("python-network", "sockets, web clients and model hubs", _network),
    Rule("python-sleeps", "sleeps, on the host or on a GPU", _sleeps),
)
"""Every rule for Python, in the order of the manual."""


def only_calls_libraries(source: str, task: Task, files: Mapping[str, str]) -> str:
    """A sentence where a submission has no kernel of its own and the task asks for one; else empty.

    files: those beside the module.
    """
    try:
        found = _library(replace(ModuleCase.read(source, task), beside=Beside(files)))
    except Unparsed:
        return ""
    return next((finding.sentence for finding in found if not finding.subject), "")


def modules_suspicions(texts: Mapping[str, str], task: Task) -> tuple[Suspicion, ...]:
    """What a person should look at in a Python submission, file by file, the entry first.

    Files in C++ and CUDA are read as sources of a torch extension are, without macros.
    """
    files = dict(texts)
    source = files.pop(next(iter(texts)))
    beside = Beside(files)
    found = list(module_suspicions(source, task, beside))
    compiled = {"": ""}  # a module's name, beside which the others lie
    for name, text in files.items():
        if name.endswith(".py"):
            inner = module_suspicions(text, task, beside, is_helper=True)
            found += [replace(each, file=name) for each in inner]
        else:
            compiled[name] = text
    found += code_suspicions(compiled, [Code.joined(compiled)], Abi.TORCH, task)
    return by_line(found)


def module_suspicions(
    source: str, task: Task, beside: Beside | None = None, *, is_helper: bool = False
) -> tuple[Suspicion, ...]:
    """What a person should look at in a module, by line, as `by_line` has it.

    C++ and CUDA in its strings are read as sources of a torch extension are, without macros.
    """
    try:
        read = ModuleCase.read(source, task)
    except Unparsed:
        return (Suspicion(check=Check.SOURCE, reason="macros: it cannot be read as Python"),)
    case = replace(read, beside=beside or Beside(), is_helper=is_helper)
    found = list(raised_by(MODULE_RULES, case))
    for text, line in case.texts():
        inner = source_suspicions(text, [text], Abi.TORCH, task)
        found += [replace(s, line=(s.line or 1) + line - 1) for s in inner]
    return by_line(found)
