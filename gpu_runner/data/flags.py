"""Compiler flags: those that every build gets, and those that a source may ask for in a comment.

    // flags: --use_fast_math -maxrregcount=128

The source is read as text. The comment is a line of its own among the first `HEAD_LINES`, before
the first line of code: above it stand only blank lines, comments and preprocessor directives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_runner.data.codec import DataError
from gpu_runner.data.verdict import Language

HEAD_LINES = 50
"""So far down a source the comment is looked for."""

STANDARD = "C++20"
"""What sources are compiled as, unless they ask for C++17."""

NO_NVTX = "-DNVTX_DISABLE"
"""CUB and Thrust would look for a profiler in each call, by dlopen and getenv."""

FIXED: Mapping[Language, tuple[str, ...]] = {
    Language.CUDA: (
        *("-std=c++20", "-O3", "-shared", "-Xcompiler=-fPIC", "-lineinfo", "-Xptxas=-v"),
        NO_NVTX,
    ),
    Language.CPP: (
        *("-std=c++20", "-O3", "-shared", "-march=native", "-fopenmp", "-fPIC", "-Wall"),
        "-Wl,--as-needed",  # a kernel without threads is to get no team of them
    ),
}
"""What every build gets, beside the device's architecture, torch's folders and the libraries."""


@dataclass(frozen=True)
class Allowed:
    """A flag that a source may ask for, once.

    form: as it is written. meaning: for people. pattern: of the flag, whole; a number in it is its
    value. group: flags of one group exclude each other. limits: smallest and largest value.
    """

    form: str
    meaning: str
    pattern: str
    group: str
    limits: tuple[int, int] | None = None

    @property
    def names(self) -> str:
        """The flag's name up to its value, as a pattern."""
        return self.pattern.split("=", 1)[0]


def _switch(name: str, meaning: str) -> Allowed:
    return Allowed(f"--{name}", meaning, f"--?{name}", name)


def _choice(name: str, meaning: str) -> Allowed:
    return Allowed(f"--{name}=true|false", meaning, f"--?{name}=(?:true|false)", name)


def _either(names: str, meaning: str) -> Iterator[Allowed]:
    """Options of g++ that are switched on with `-fNAME` and off with `-fno-NAME`."""
    for name in names.split():
        yield Allowed(f"-f[no-]{name}", meaning, f"-f(?:no-)?{name}", name)


_LEVEL = "optimization level"
_STANDARD = "standard"

_CUDA = (
    _switch("use_fast_math", "approximate functions, division and roots; flush denormals"),
    _choice("ftz", "flush denormal float32 values to zero"),
    _choice("prec-div", "divide float32 values exactly as IEEE 754 requires"),
    _choice("prec-sqrt", "take float32 square roots exactly as IEEE 754 requires"),
    _choice("fmad", "contract products and sums into fused multiply-adds"),
    Allowed(
        "-maxrregcount=N",
        "use at most N registers per thread, 16 to 255",
        r"--?maxrregcount=(\d+)",
        "maxrregcount",
        (16, 255),
    ),
    _switch("extra-device-vectorization", "vectorize device code more aggressively"),
    _switch("restrict", "assume that kernels' pointer parameters don't alias"),
    _switch("expt-relaxed-constexpr", "let device code call constexpr host functions"),
    Allowed(
        "--extended-lambda",
        "allow lambdas with __device__",
        "--?(?:expt-)?extended-lambda",
        "extended-lambda",
    ),
    Allowed("-O0 to -O3", "replaces -O3", "-O[0-3]", _LEVEL),
    Allowed(
        "-Xptxas=-O0 to -O3",
        "the assembler's optimization level",
        "-Xptxas=-O[0-3]",
        "assembler's level",
    ),
    Allowed(
        "-Xptxas=-dlcm=ca|cg|cs|lu|cv",
        "how loads from global memory are cached",
        "-Xptxas=-dlcm=(?:ca|cg|cs|lu|cv)",
        "dlcm",
    ),
    Allowed("-std=c++17|c++20", "replaces C++20", r"-std=c\+\+(?:17|20)", _STANDARD),
)

_CPP = (
    Allowed("-O0 to -O3, -Ofast", "replaces -O3", "-O(?:[0-3]|fast)", _LEVEL),
    *_either("fast-math", "reorder and approximate arithmetic; includes everything below"),
    *_either(
        "math-errno trapping-math signed-zeros finite-math-only unsafe-math-optimizations"
        " associative-math reciprocal-math rounding-math cx-limited-range",
        "a part of -ffast-math, or an option that it turns off",
    ),
    Allowed(
        "-ffp-contract=fast|on|off",
        "contract products and sums into fused multiply-adds",
        "-ffp-contract=(?:fast|on|off)",
        "fp-contract",
    ),
    *_either("unroll-loops unroll-all-loops peel-loops", "unroll loops"),
    *_either("tree-vectorize tree-slp-vectorize", "use vector instructions"),
    Allowed(
        "-fvect-cost-model=MODEL",
        "when to use vectors: unlimited, dynamic, cheap or very-cheap",
        "-fvect-cost-model=(?:unlimited|dynamic|cheap|very-cheap)",
        "vect-cost-model",
    ),
    Allowed(
        "-mprefer-vector-width=N",
        "128, 256 or 512 bits",
        "-mprefer-vector-width=(?:128|256|512)",
        "prefer-vector-width",
    ),
    *_either(
        "tree-loop-distribution prefetch-loop-arrays", "restructure loops to use caches better"
    ),
    *_either("strict-aliasing", "assume that values of different types don't alias"),
    Allowed("-fopenmp-simd", "apply `omp simd` directives", "-fopenmp-simd", "openmp-simd"),
    Allowed(
        "-std=c++17|c++20|gnu++17|gnu++20",
        "replaces C++20",
        r"-std=(?:c|gnu)\+\+(?:17|20)",
        _STANDARD,
    ),
)

ALLOWED: Mapping[Language, tuple[Allowed, ...]] = {Language.CUDA: _CUDA, Language.CPP: _CPP}
"""All that a source may ask for: code generation and arithmetic, nothing that the judge sees."""

EXAMPLE: Mapping[Language, str] = {
    Language.CUDA: "// flags: --use_fast_math -maxrregcount=128",
    Language.CPP: "// flags: -ffast-math -funroll-loops",
}
"""A comment that asks."""

_LINKING = "all kernels are linked the same way"
_REFUSED = (
    (r"--?(?:gencode|arch|code|gpu-\w+)\b.*|-m(?:arch|tune|cpu)=.*|-m(?:avx|sse|fma|bmi).*",
     "kernels are always built for the runner's own device"),
    (r"--?default-stream.*",
     "calls are timed on the legacy default stream, and per-thread streams synchronize with it "
     "anyway"),
    (r"-[IDU].*|--?(?:define-macro|undefine-macro|include|isystem|pre-include).*",
     "every kernel gets the same headers; define macros in the source"),
    (r"-[lL].*|-Wl,.*|-Xlinker.*|-static.*|-nostd.*|-fPI[CE]|-pie|-rdynamic|--?cudart.*|-flto.*"
     r"|--?(?:rdc|relocatable-device-code|dlto).*", _LINKING),
    (r"-G|-g.*|-p|-pg|-f(?:sanitize|instrument|profile|plugin|dump|stack-protector).*"
     r"|--?device-debug|--coverage", "it changes what is measured or what the judge relies on"),
)  # fmt: skip
_COMMENT = re.compile(r"//\s*flags:(.*)")
_WITH_VALUE = re.compile(r"-Xptxas|--?maxrregcount|-std|--?ftz|--?prec-(?:div|sqrt)|--?fmad")


def source_flags(source: str, language: Language) -> tuple[str, ...]:
    """The flags that a source asks for, in its order; none is fine.

    Raises `DataError` on the field `source`, with the line, what is wrong with which flag, and
    what is allowed.
    """
    if language is Language.PYTHON:  # nothing of it is compiled by us
        return ()
    flags: dict[str, str] = {}  # by group
    for number, flag in _asked_for(source):
        allowed = _allowed(flag, language)
        if allowed is None or not _within(flag, allowed):
            raise _refusal(number, flag, language)
        if allowed.group in flags:
            other = flags[allowed.group]
            again = f"{flag!r} comes after {other!r}" if other != flag else f"{flag!r} comes twice"
            raise DataError("source", f"line {number}: flags: {again}: request each flag only once")
        flags[allowed.group] = flag
    return tuple(flags.values())


def build_flags(language: Language, asked: tuple[str, ...]) -> list[str]:
    """`FIXED` and what a source asks for, which takes the place of a fixed flag of its group."""
    groups = {_group(flag, language) for flag in asked} - {""}
    kept = [flag for flag in FIXED[language] if _group(flag, language) not in groups]
    return [*kept, *asked]


def is_level(flag: str) -> bool:
    """Whether a flag says how much to optimise."""
    return re.fullmatch("-O(?:[0-3]|fast)", flag) is not None


def allowed_text(language: Language) -> str:
    """What a source may ask for, as a list in a sentence."""
    return ", ".join(allowed.form for allowed in ALLOWED[language])


def _asked_for(source: str) -> Iterator[tuple[int, str]]:
    """Every flag of the comment, with the comment's line."""
    comments = list(_comments(source))
    if len(comments) > 1:
        first, second = comments[0][0], comments[1][0]
        reason = f"line {second}: flags must all be in one comment; line {first} already has one"
        raise DataError("source", reason)
    for number, text in comments:
        for flag in _flags(text):
            yield number, flag


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Lines `// flags: ...` before the first line of code, and what they say."""
    in_block = False
    for number, line in enumerate(source.removeprefix("\ufeff").split("\n")[:HEAD_LINES], 1):
        text = line.strip()
        if in_block:
            in_block = "*/" not in text
        elif match := _COMMENT.fullmatch(text):
            yield number, match[1]
        elif text.startswith("/*"):
            in_block = "*/" not in text[2:]
        elif text and not text.startswith(("//", "#")):
            return


def _flags(text: str) -> Iterator[str]:
    """Words of a comment, each flag with its value, and what is for the assembler one by one."""
    words = iter(text.split())
    for word in words:
        flag = f"{word}={next(words, '')}" if _WITH_VALUE.fullmatch(word) else word
        name, _, value = flag.partition("=")
        if name == "-Xptxas":
            yield from (f"{name}={part}" for part in value.split(","))
        else:
            yield flag


def _allowed(flag: str, language: Language) -> Allowed | None:
    found = (each for each in ALLOWED[language] if re.fullmatch(each.pattern, flag))
    return next(found, None)


def _group(flag: str, language: Language) -> str:
    allowed = _allowed(flag, language)
    return allowed.group if allowed else ""


def _within(flag: str, allowed: Allowed) -> bool:
    if allowed.limits is None:
        return True
    smallest, largest = allowed.limits
    match = re.fullmatch(allowed.pattern, flag)
    return match is not None and len(match[1]) < 10 and smallest <= int(match[1]) <= largest


def _refusal(number: int, flag: str, language: Language) -> DataError:
    return DataError(
        "source",
        f"line {number}: flags: {flag[:80]!r} {_why_not(flag, language)};"
        f" the allowed flags are {allowed_text(language)}",
    )


def _why_not(flag: str, language: Language) -> str:
    if flag in FIXED[language]:
        return "is already used in every build"
    name = flag.split("=", 1)[0]
    for allowed in ALLOWED[language]:
        if "=" in flag and "=" in allowed.pattern and re.fullmatch(allowed.names, name):
            if allowed.limits is None and name == "-Xptxas":
                continue  # several flags have this name
            return f"has an invalid value ({allowed.form}: {allowed.meaning})"
    found = (why for pattern, why in _REFUSED if re.fullmatch(pattern, flag))
    why = next(found, "")
    return f"cannot be requested: {why}" if why else "is not a flag that kbench knows"
