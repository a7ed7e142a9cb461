"""Builds the kernel on its first call, loads it, and calls it on tensors."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import platform
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from . import modules, task

_EXTENSION = "kbench_kernel"

Kernel = Callable[[task.Arguments], task.Outputs]


@functools.cache
def kernel() -> Kernel:
    """The kernel as a function of all its arguments; compiles it the first time.

    Raises `RuntimeError` with the compiler's log where that fails.
    """
    winner = task.WINNER
    if winner["language"] == "python":
        return _python(modules.entry())
    if winner["abi"] == "torch":
        return _python(_extension(_built()))
    return functools.partial(_call_c, getattr(ctypes.CDLL(str(_built())), winner["symbol"]))


def _python(module: Any) -> Kernel:
    """A module's function, or its `ModelNew`."""
    model = getattr(module, "ModelNew", None) if task.DIRECTION == "forward" else None
    function = getattr(module, task.DIRECTION) if model is None else model()

    def call(arguments: task.Arguments) -> task.Outputs:
        if isinstance(function, nn.Module):
            function.eval().to(next(task.tensors_in(arguments)).device)
        with torch.no_grad():
            return tuple(task.tensors_in(function(*arguments)))

    return call


def _call_c(function: Any, arguments: task.Arguments) -> task.Outputs:
    """Call a C function; what it writes is new memory, or a copy of what it changes."""
    given = dict(zip(task.NAMES, arguments, strict=True))
    device = next(task.tensors_in(arguments)).device
    shapes = iter(_outputs_like(arguments))
    passed: list[Any] = []
    outputs: list[Tensor] = []
    for each in task.WINNER["parameters"]:
        value = given.get(each["name"])
        if each["role"] in ("output", "inout"):
            shape, dtype = next(shapes)
            new = torch.empty(shape, dtype=dtype, device=device)
            value = new if value is None else value.clone()
            outputs.append(value)
        if isinstance(value, Tensor):
            passed.append(ctypes.c_void_p(value.data_ptr()))
        else:
            passed.append(task.C_TYPES[each["ctype"]][1](value))
    with _on(device):
        function(*passed)
    return tuple(outputs)


_known: dict[Any, Any] = {}


def _outputs_like(arguments: task.Arguments) -> list[tuple[Any, torch.dtype]]:
    """The same as the task says, asked once for each set of sizes."""
    key = task.sizes(arguments)
    if key not in _known:
        _known[key] = task.outputs_like(arguments)
    return _known[key]  # type: ignore[no-any-return]


@contextmanager
def _on(device: torch.device) -> Iterator[None]:
    """C kernels use CUDA's default stream: it waits for PyTorch's, and then PyTorch's for it."""
    if device.type != "cuda":
        yield
        return
    own, theirs = torch.cuda.current_stream(device), torch.cuda.default_stream(device)
    with torch.cuda.device(device):
        theirs.wait_stream(own)
        yield
        own.wait_stream(theirs)


def _extension(path: Path) -> Any:
    """Import a PyTorch extension from its file."""
    loader = importlib.machinery.ExtensionFileLoader(_EXTENSION, str(path))
    spec = importlib.util.spec_from_file_location(_EXTENSION, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _built() -> Path:
    """The kernel's library, in a cache that is keyed by all that it is made of."""
    source = task.FOLDER / task.WINNER["entry"]
    header = task.HERE / "declaration.h"
    compiler = _compiler("nvcc" if source.suffix == ".cu" else "g++")
    command = [compiler, str(source), *task.WINNER["flags"]]
    command += ["-include", str(header)] if header.exists() else []
    command += _torch_flags() if task.WINNER["abi"] == "torch" else []
    if source.suffix == ".cu":
        command.append(f"-Xlinker=-rpath={Path(compiler).resolve().parents[1] / 'lib64'}")
    for word in ("-iquote", str(task.FOLDER)):
        command.append(f"-Xcompiler={word}" if source.suffix == ".cu" else word)
    texts = [path.read_text() for path in sorted(task.HERE.rglob("*")) if _is_source(path)]
    known = "\0".join([*command, *texts, torch.__version__, platform.node()])
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "kbench-exported"
    library = cache / f"{hashlib.sha256(known.encode()).hexdigest()}.so"
    if not library.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            made = Path(folder, "library.so")
            command += ["-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"could not build {source}:\n{done.stdout}{done.stderr}")
            made.replace(library)
    return library


def _is_source(path: Path) -> bool:
    return path.is_file() and path.suffix not in (".py", ".pyc", ".md", ".json")


def _compiler(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin")
    if found is None:
        raise RuntimeError(f"{name} is not installed, but building the kernel requires it")
    return found


def _torch_flags() -> list[str]:
    root = Path(torch.__file__).parent
    headers = [root / "include", root / "include/torch/csrc/api/include"]
    headers.append(Path(sysconfig.get_paths()["include"]))
    names = ["c10", "torch", "torch_cpu", "torch_python"]
    names += ["c10_cuda", "torch_cuda"] if torch.version.cuda else []
    return [
        *(f"-isystem{path}" for path in headers),
        f"-DTORCH_EXTENSION_NAME={_EXTENSION}",
        "-DTORCH_API_INCLUDE_EXTENSION_H",
        f"-L{root / 'lib'}",
        *(f"-l{name}" for name in names),
    ]
