"""Finds compilers and torch on this host, and knows the fixed flags of every build."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.verdict import Abi, DeviceKind

TORCH_MODULE = "kbench_kernel"
"""Name under which a torch extension is compiled and imported."""

_HALF_FLAGS = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)


class ToolchainError(Exception):
    """A compiler or torch is not installed; the message names it."""


@dataclass(frozen=True)
class Compiler:
    """A compiler and the version that goes into every cache key."""

    path: str
    version: str


@functools.cache
def compiler(kind: DeviceKind) -> Compiler:
    """nvcc for CUDA, g++ for the CPU. Raises `ToolchainError` where it is missing."""
    name = "nvcc" if kind is DeviceKind.CUDA else "g++"
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin")
    if path is None:
        raise ToolchainError(f"{name} is not installed")
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    lines = done.stdout.strip().splitlines()
    text = lines[-1] if kind is DeviceKind.CUDA else lines[0]
    return Compiler(path, text.strip())


@functools.cache
def torch_folder() -> Path:
    """Where torch is installed, found without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise ToolchainError("torch is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


@functools.cache
def torch_version() -> str:
    """Version of the installed torch, such as 2.13.0+cpu."""
    text = (torch_folder() / "version.py").read_text()
    match = re.search(r"__version__ = '([^']+)'", text)
    return match[1] if match else "unknown"


def flags(kind: DeviceKind, abi: Abi, architecture: str) -> list[str]:
    """Compile and link flags, the same for every submission; nobody can add to them."""
    common = ["-std=c++17", "-O3", "-shared"]
    if kind is DeviceKind.CUDA:
        common += [f"-arch={architecture}", "-Xcompiler=-fPIC", "-lineinfo", "-Xptxas=-v"]
        common += shared_cuda_runtime()
        linker = "-Xlinker="
    else:
        common += ["-march=native", "-fopenmp", "-fPIC", "-Wall"]
        common += ["-Wl,--as-needed"]  # a kernel without threads is to get no team of them
        linker = "-Wl,"
    return common + (_torch_flags(kind, linker) if abi is Abi.TORCH else [])


@functools.cache
def shared_cuda_runtime() -> tuple[str, ...]:
    """Flags that link CUDA's runtime as the one shared library of a process.

    With a runtime of its own in each library, the runner would not see a submission's errors.
    """
    done = subprocess.run(
        [compiler(DeviceKind.CUDA).path, "--dryrun", "-x", "cu", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    folders = re.findall(r'"-L([^"]+)"', done.stderr)
    found = [os.path.realpath(folder) for folder in folders if not folder.endswith("stubs")]
    return ("-cudart=shared", *(f"-Xlinker=-rpath={folder}" for folder in dict.fromkeys(found)))


def _torch_flags(kind: DeviceKind, linker: str) -> list[str]:
    folder = torch_folder()
    includes = [folder / "include", folder / "include/torch/csrc/api/include"]
    includes.append(Path(sysconfig.get_paths()["include"]))
    libraries = ["c10", "torch", "torch_cpu", "torch_python"]
    extra: list[str] = []
    if kind is DeviceKind.CUDA:
        libraries += ["c10_cuda", "torch_cuda"]
        extra += _HALF_FLAGS
    return [
        f"-DTORCH_EXTENSION_NAME={TORCH_MODULE}",
        "-DTORCH_API_INCLUDE_EXTENSION_H",
        *(flag for path in includes for flag in ("-isystem", str(path))),
        *extra,
        f"-L{folder / 'lib'}",
        *(f"-l{name}" for name in libraries),
        f"{linker}--require-defined=PyInit_{TORCH_MODULE}",
    ]


def torch_paths() -> tuple[Path, ...]:
    """What the compiler of a torch extension must be able to read."""
    beside = torch_folder().parent / "nvidia"  # where wheels put CUDA's own headers
    folders = (torch_folder(), beside, Path(sysconfig.get_paths()["include"]))
    return tuple(folder for folder in folders if folder.exists())


def required_symbol(kind: DeviceKind, symbol: str) -> str:
    """The flag that makes linking fail, with its name, when a symbol is missing."""
    linker = "-Xlinker=" if kind is DeviceKind.CUDA else "-Wl,"
    return f"{linker}--require-defined={symbol}"


@functools.cache
def machine() -> str:
    """What `-march=native` stands for, so that a cache is not shared between unlike hosts."""
    done = subprocess.run(
        [compiler(DeviceKind.CPU).path, "-march=native", "-Q", "--help=target"],
        capture_output=True,
        text=True,
        check=False,
    )
    match = re.search(r"-march=\s+(\S+)", done.stdout)
    return f"{platform.machine()}-{match[1] if match else 'unknown'}"
