"""The comment in which a source asks for compiler flags, and what is refused there."""

from __future__ import annotations

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.flags import FIXED, HEAD_LINES, build_flags, source_flags
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language

CODE = 'extern "C" void f(float* out) { out[0] = 1; }\n'


def asked(comment: str, language: Language = Language.CUDA) -> tuple[str, ...]:
    return source_flags(f"{comment}\n{CODE}", language)


def refused(comment: str, language: Language = Language.CUDA) -> str:
    with pytest.raises(DataError) as caught:
        asked(comment, language)
    assert caught.value.field == "source"
    return caught.value.reason


@pytest.mark.parametrize(
    ("comment", "flags"),
    [
        ("// flags: --use_fast_math -maxrregcount=128", ("--use_fast_math", "-maxrregcount=128")),
        ("//flags:-use_fast_math", ("-use_fast_math",)),
        ("// flags: --ftz=true --fmad=false --prec-div=false --prec-sqrt=false", None),
        ("// flags: -maxrregcount 64 -std c++17", ("-maxrregcount=64", "-std=c++17")),
        ("// flags: -Xptxas -O2,-dlcm=cg", ("-Xptxas=-O2", "-Xptxas=-dlcm=cg")),
        ("// flags: --extended-lambda --expt-relaxed-constexpr -maxrregcount=255", None),
        ("// flags:", ()),
    ],
)
def test_cuda_flags_are_read(comment: str, flags: tuple[str, ...] | None) -> None:
    words = tuple(comment.partition("flags:")[2].split())
    assert asked(comment) == (words if flags is None else flags)


def test_cpp_flags_are_read() -> None:
    flags = (
        "-O0 -Ofast -ffast-math -fno-math-errno -ffinite-math-only -fno-finite-math-only"
        " -funroll-loops -fno-tree-vectorize -ffp-contract=off -mprefer-vector-width=512"
        " -fvect-cost-model=unlimited -fopenmp-simd -std=gnu++17"
    )
    for flag in flags.split():
        assert asked(f"// flags: {flag}", Language.CPP) == (flag,)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_comment_stands_before_the_code(end: str) -> None:
    head = ["\ufeff/* A kernel,", "// flags: -O0", "by somebody. */", "", "#include <cmath>"]
    lines = [*head, "  // flags: -O2  ", *CODE.splitlines()]
    assert source_flags(end.join(lines), Language.CPP) == ("-O2",)


@pytest.mark.parametrize(
    "source",
    [
        f"{CODE}// flags: -O2\n",
        f'const char* text = R"(\n// flags: -O2\n)";\n{CODE}',
        f"int x;  // flags: -O2\n{CODE}",
        "\n" * HEAD_LINES + f"// flags: -O2\n{CODE}",
        f"// the flags: -O2\n{CODE}",
    ],
)
def test_what_stands_elsewhere_is_no_request(source: str) -> None:
    assert source_flags(source, Language.CPP) == ()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("-maxrregcount=15", "has an invalid value"),
        ("-maxrregcount=256|-maxrregcount=99999999999999999999|-maxrregcount", "16 to 255"),
        ("--ftz=maybe", "--ftz=true|false"),
        ("-O2 -O3|--use_fast_math -use_fast_math", "comes after"),
        ("--restrict --restrict", "comes twice"),
        ("-O2\n// flags: --restrict", "line 2: flags must all be in one comment"),
        ("\n// flags: -lineinfo", "line 2: flags"),
        ("-lineinfo|-Xptxas -v", "is already used in every build"),
        ("-arch=sm_80|-gencode=arch=compute_80,code=sm_80", "for the runner's own device"),
        ("--default-stream per-thread", "legacy default stream"),
        ("-lcublas|-cudart=static|-rdc=true", "linked the same way"),
        ("-G", "what the judge relies on"),
        ("--fast|-Xptxas=--warn-on-spills|-Xptxas|-ffast-math|@file|-O2;reboot|none", "not a flag"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_with_its_reason(flags: str, words: str) -> None:
    for each in flags.split("|"):
        assert words in refused(f"// flags: {each}"), each


def test_cpp_refuses_what_reaches_beyond_code_generation() -> None:
    flags = (
        "-march=haswell -Wl,-rpath,/tmp -static -flto -fsanitize=address -finstrument-functions"
        " -fplugin=./x.so -fprofile-generate -pg -include -Xlinker=-z -U__FAST_MATH__ -fno-pic"
        " --use_fast_math"
    )
    for flag in flags.split():
        assert "the allowed flags are" in refused(f"// flags: {flag}", Language.CPP)


def test_a_flag_takes_the_place_of_the_fixed_one_of_its_kind() -> None:
    assert build_flags(Language.CPP, ()) == list(FIXED[Language.CPP])
    found = build_flags(Language.CPP, ("-Ofast", "-std=c++17", "-funroll-loops"))
    assert "-O3" not in found
    assert "-std=c++20" not in found
    assert found[-3:] == ["-Ofast", "-std=c++17", "-funroll-loops"]
    assert "-O3" in build_flags(Language.CUDA, ("-Xptxas=-O1",))


def test_a_solution_with_a_wrong_flag_is_no_solution() -> None:
    source = f"// flags: -O2 -lcuda\n{CODE}"
    with pytest.raises(DataError, match="-lcuda"):
        Solution(source=source, language=Language.CUDA)
    solution = Solution(source=source.replace(" -lcuda", ""), language=Language.CUDA)
    assert solution.flags == ("-O2",)
