"""Sources as the static rules see them: preprocessed by g++, without headers that are not asked."""

from __future__ import annotations

import re
import subprocess

from gpu_runner.data.integrity import Suspicion
from gpu_runner.data.static import own_lines, source_suspicions
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, Language

_HEADERS = ("sys/mman.h", "sys/cdefs.h", "sys/syscall.h")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include|include_next|embed|import)\b.*$", re.MULTILINE)
_OF_CUDA = (
    "-D__host__=__attribute__((host))",
    "-D__device__=__attribute__((device))",
    "-D__global__=__attribute__((global))",
    "-D__forceinline__=inline",
)


def passes(source: str, language: Language = Language.CPP) -> list[str]:
    """What `own_code` keeps of a source, whose lines may well make no sense to a compiler."""
    known = tuple(f"<{name}>" for name in _HEADERS)
    text = _INCLUDE.sub(lambda m: m[0] if m[0].endswith(known) else "", source)
    macros = _OF_CUDA if language is Language.CUDA else ()
    done = subprocess.run(
        ["g++", "-E", "-w", "-x", "c++", "-std=c++20", *macros, "-"],
        input=text.encode(errors="surrogatepass"),
        capture_output=True,
        check=False,
    )
    return [own_lines(done.stdout.decode(errors="replace")).text]


def checked(source: str, language: Language, abi: Abi, task: Task) -> tuple[Suspicion, ...]:
    """`source_suspicions` with the source's passes."""
    return source_suspicions(source, passes(source, language), abi, task)
