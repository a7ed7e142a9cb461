"""Finds compilers, torch and other packages on this host, and knows the fixed flags of builds."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.flags import build_flags
from gpu_runner.data.packages import ABSENT, PACKAGES
from gpu_runner.data.verdict import Abi, DeviceKind

TORCH_HEADERS = Path(__file__).resolve().parents[2] / "torch_headers"
"""Few of torch's declarations, in headers of the same names: enough for nearly all kernels."""

TORCH_MODULE = "kbench_kernel"
"""Name under which a torch extension is compiled and imported."""

_FIRST_WITH_OWN_TARGET = (9, 0)  # sm_90a is the first target of that kind
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


def described(kind: DeviceKind) -> str:
    """The compiler in a few words: "g++ 12.2.0", or "nvcc 13.0 with g++ 12.2.0".

    Raises `ToolchainError` where it is missing.
    """
    host = f"g++ {_last_number(compiler(DeviceKind.CPU).version)}"
    if kind is DeviceKind.CPU:
        return host
    match = re.search(r"cuda_(\d+\.\d+)", compiler(kind).version)
    words = f"nvcc {match[1] if match else _last_number(compiler(kind).version)} with {host}"
    return f"{words}, CUTLASS {found.version}" if (found := cutlass()) else words


def _last_number(version: str) -> str:
    found = re.findall(r"\d+(?:\.\d+)+", version)
    return found[-1] if found else version


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


@dataclass(frozen=True)
class Cutlass:
    """Headers of CUTLASS and CuTe: the folders to include, and their version."""

    folders: tuple[Path, ...]
    version: str


@functools.cache
def cutlass() -> Cutlass | None:
    """The headers in the wheel `nvidia-cutlass`, found without importing it; None without it."""
    spec = importlib.util.find_spec("cutlass_library")
    roots = [Path(each) for each in (spec.submodule_search_locations or ())] if spec else []
    for root in roots:
        include, utilities = root / "source/include", root / "source/tools/util/include"
        numbers = include / "cutlass/version.h"
        if numbers.is_file():
            found = dict(re.findall(r"CUTLASS_(MAJOR|MINOR|PATCH)\s+(\d+)", numbers.read_text()))
            version = ".".join(found.get(part, "0") for part in ("MAJOR", "MINOR", "PATCH"))
            return Cutlass((include, *([utilities] if utilities.is_dir() else ())), version)
    return None


def _cutlass_flags() -> list[str]:
    """The folders of its headers, and the version, which is part of the cache's key."""
    found = cutlass()
    if found is None:
        return []
    folders = [flag for folder in found.folders for flag in ("-isystem", str(folder))]
    return [*folders, f'-DKBENCH_CUTLASS="{found.version}"']


def cutlass_paths() -> tuple[Path, ...]:
    """What the compiler of a CUDA kernel may read beside its own headers."""
    found = cutlass()
    return found.folders if found else ()


@functools.cache
def installed_at() -> dict[str, str]:
    """When nvcc and the headers that it reads were installed, by path; empty without nvcc.

    nvcc writes the paths and times of headers into a kernel's line table. So two hosts with the
    same versions may build different bytes.
    """
    try:
        nvcc = Path(compiler(DeviceKind.CUDA).path)
    except ToolchainError:
        return {}
    return {str(path): str(path.stat().st_mtime_ns) for path in (nvcc, *cutlass_paths())}


def architecture(capability: tuple[int, int]) -> str:
    """Compile target of a GPU of this compute capability, such as sm_90a.

    With the letter it is for that GPU alone, and `wgmma`, `setmaxnreg` and `tcgen05` assemble.
    Older GPUs have no such target, and older compilers do not know it: then without.
    """
    major, minor = capability
    plain = f"sm_{major}{minor}"
    own = f"{plain}a"
    return own if capability >= _FIRST_WITH_OWN_TARGET and _is_known(own) else plain


@functools.cache
def _is_known(target: str) -> bool:
    """Whether nvcc can build for a target: `--list-gpu-code` leaves those with a letter out."""
    options = ("--dryrun", for_architecture(target), "-x", "cu", "/dev/null")
    return _told(DeviceKind.CUDA, *options).returncode == 0


def _told(kind: DeviceKind, *options: str) -> subprocess.CompletedProcess[str]:
    """What a compiler answers to these options."""
    command = [compiler(kind).path, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def for_architecture(target: str) -> str:
    """The flag that builds for one target alone.

    `-arch=sm_90a` would compile device code a second time, for sm_90, where wgmma is an error.
    """
    return f"-gencode=arch={target.replace('sm_', 'compute_')},code={target}"


def flags(
    kind: DeviceKind, abi: Abi, target: str, asked: tuple[str, ...] = (), *, slim: bool = False
) -> list[str]:
    """Compile and link flags: the same for every submission, and what its source asks for.

    slim: a torch extension is to see `TORCH_HEADERS`, placed where it is compiled, before torch's.
    """
    common = build_flags(kind.language, asked)
    linker = "-Wl,"
    if kind is DeviceKind.CUDA:
        common += [for_architecture(target), *shared_cuda_runtime(), *_cutlass_flags()]
        linker = "-Xlinker="
    if abi is Abi.TORCH:
        common += ["-isystem", TORCH_HEADERS.name] if slim else []
        common += _torch_flags(kind, linker)
    return common


@functools.cache
def shared_cuda_runtime() -> tuple[str, ...]:
    """Flags that link CUDA's runtime as the one shared library of a process.

    With a runtime of its own in each library, the runner would not see a submission's errors.
    """
    done = _told(DeviceKind.CUDA, "--dryrun", "-x", "cu", "/dev/null")
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


@functools.cache
def torch_headers() -> dict[str, str]:
    """Texts of `TORCH_HEADERS`, by their paths from where they are placed."""
    folder = TORCH_HEADERS.parent
    found = sorted(path for path in TORCH_HEADERS.rglob("*.h"))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


def beside_flags(kind: DeviceKind) -> tuple[str, ...]:
    """Flags by which files in folders of a submission include others from its top."""
    return tuple(
        f"-Xcompiler={word}" if kind is DeviceKind.CUDA else word for word in ("-iquote", ".")
    )


def torch_paths() -> tuple[Path, ...]:
    """What the compiler of a torch extension must be able to read."""
    beside = torch_folder().parent / "nvidia"  # where wheels put CUDA's own headers
    folders = (torch_folder(), beside, Path(sysconfig.get_paths()["include"]))
    return tuple(folder for folder in folders if folder.exists())


def required_symbol(kind: DeviceKind, symbol: str) -> str:
    """The flag that makes linking fail, with its name, when a symbol is missing."""
    return linked(kind, f"--require-defined={symbol}")


def linked(kind: DeviceKind, flag: str) -> str:
    """A flag of the linker, as the compiler takes it."""
    return f"{'-Xlinker=' if kind is DeviceKind.CUDA else '-Wl,'}{flag}"


@functools.cache
def machine() -> str:
    """What `-march=native` stands for, so that a cache is not shared between unlike hosts."""
    done = _told(DeviceKind.CPU, "-march=native", "-Q", "--help=target")
    match = re.search(r"-march=\s+(\S+)", done.stdout)
    return f"{platform.machine()}-{match[1] if match else 'unknown'}"


@functools.cache
def python_packages() -> dict[str, str]:
    """Versions of those that are installed, by the name that a kernel imports."""
    found = {name: _version(packages) for name, packages in PACKAGES.items()}
    return {name: version for name, version in found.items() if version != ABSENT}


def told_packages() -> dict[str, str]:
    """The same as a site is told of them: with those that are absent."""
    return {**dict.fromkeys(PACKAGES, ABSENT), **python_packages()}


def _version(packages: Sequence[str]) -> str:
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(package)
    return ABSENT
