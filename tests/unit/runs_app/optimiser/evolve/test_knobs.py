"""Declared knobs: found where they are declared, changed without touching anything else."""

from __future__ import annotations

import contextlib
import itertools
import time

import pytest

from gpu_runner.data.formats import catalog_folder
from runs_app.optimiser.evolve.knobs import (
    MAX_KNOBS,
    MAX_VALUES,
    Knob,
    KnobError,
    find_knobs,
    space_size,
    with_knobs,
)
from tests.unit.runs_app.optimiser.evolve.worlds import values_of

SOURCE = """\
// Knobs are declared below.
#include <cstdio>
constexpr int TILE = 32;  // knob: 8 16 32 64
#define UNROLL 4  // knob: 1 2 4 8
static constexpr float SLOPE = -1.5e-3f; //knob:-1.5e-3f +2.0f
    using VEC = float4;  // knob: float float2 float4
constexpr int FIXED = 3;  // not a knob: 1 2 3
"""


def test_knobs_are_found_in_the_order_of_the_source() -> None:
    assert find_knobs(SOURCE) == (
        Knob("TILE", ("8", "16", "32", "64"), "32", 3),
        Knob("UNROLL", ("1", "2", "4", "8"), "4", 4),
        Knob("SLOPE", ("-1.5e-3f", "+2.0f"), "-1.5e-3f", 5),
        Knob("VEC", ("float", "float2", "float4"), "float4", 6),
    )
    assert space_size(find_knobs(SOURCE)) == 4 * 4 * 2 * 3
    assert values_of(SOURCE) == {"TILE": "32", "UNROLL": "4", "SLOPE": "-1.5e-3f", "VEC": "float4"}


@pytest.mark.parametrize(
    "line",
    [
        "constexpr int T = 8;",
        "  const int T = 8 ;",
        "int const T=8;",
        "inline constexpr unsigned long long T = 8;",
        "/* constexpr int X = 1; */ constexpr auto T = /* = 9; */ 8;",
        "  #  define T\t8",
        "using T = 8;",
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_each_form_of_a_constant(line: str, ending: str) -> None:
    source = f"{line}  // knob: 8 16{ending}"
    assert find_knobs(source) == (Knob("T", ("8", "16"), "8", 1),)
    before, _, after = source.rpartition("8 16")
    changed = before.rpartition("8")[0] + "16" + before.rpartition("8")[2] + "8 16" + after
    assert with_knobs(source, {"T": "16"}) == changed


def test_every_combination_is_reached_and_read_back() -> None:
    knobs = find_knobs(SOURCE)
    seen = set()
    for combination in itertools.product(*(knob.values for knob in knobs)):
        chosen = dict(zip((knob.name for knob in knobs), combination, strict=True))
        changed = with_knobs(SOURCE, chosen)
        assert values_of(changed) == chosen
        assert [(k.name, k.values, k.line) for k in find_knobs(changed)] == [
            (k.name, k.values, k.line) for k in knobs
        ]
        assert with_knobs(changed, values_of(SOURCE)) == SOURCE
        seen.add(changed)
    assert len(seen) == space_size(knobs)
    assert with_knobs(SOURCE, {"UNROLL": "8"}) == SOURCE.replace("UNROLL 4", "UNROLL 8")


@pytest.mark.parametrize(
    "text",
    [
        'const char* text = "constexpr int T = 8;  // knob: 8 16";',
        '"a \\" b\\\n constexpr int T = 8;  // knob: 8 16"',
        "/* constexpr int T = 8;  // knob: 8 16 */",
        "/* never closed\nconstexpr int T = 8;  // knob: 8 16\n",
        'R"(\nconstexpr int T = 8;  // knob: 8 16\n)"',
        'u8R"x(\n)" constexpr int T = 8;  // knob: 8 16\n)x"',
        'R"(never closed\nconstexpr int T = 8;  // knob: 8 16\n',
        "// a comment that goes on \\\nconstexpr int T = 8;  // knob: 8 16",
        "// constexpr int T = 8;  // knob: 8 16",
    ],
)
def test_what_is_no_comment_of_the_code_is_left_alone(text: str) -> None:
    real = "constexpr int REAL = 1;  // knob: 1 2\n"
    source = f"{real}{text}"
    assert [knob.name for knob in find_knobs(source)] == ["REAL"]
    assert with_knobs(source, {"REAL": "2"}) == f"constexpr int REAL = 2;  // knob: 1 2\n{text}"


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ("constexpr int T = 7;  // knob: 8 16", 1, "T is 7, which is not one of its values"),
        ("\n\nconstexpr int T = 8;  // knob: 8", 3, "T needs at least two values"),
        ("#define T 8  // knob:", 1, "T needs at least two values"),
        ("#define T 8  // knob: 8 16 8", 1, "T lists a value twice"),
        ("#define T 8  // knob: 8 (1<<4)", 1, "'(1<<4)' of T is not a plain word"),
        ("#define T 8  // knob: 8 16 \\\n32", 1, "of T is not a plain word"),
        ("#define T 8  // knob: 8 \uff11", 1, "of T is not a plain word"),
        ("#define T 8 // knob: 8 9\nconst int T = 8; // knob: 8 9", 2, "T is already a knob, on 1"),
        ("// knob: 8 16", 1, "must end a line that defines one constant"),
        ("constexpr int T = 8  // knob: 8 16", 1, "must end a line that defines one constant"),
        ("#define T(x) 8  // knob: 8 16", 1, "one plain word or number"),
        ("constexpr int T = 8, U = 9;  // knob: 8 16", 1, "one plain word or number"),
        ('constexpr auto T = "8";  // knob: 8 16', 1, "one plain word or number"),
    ],
)
def test_a_bad_declaration_names_its_line(source: str, line: int, reason: str) -> None:
    with pytest.raises(KnobError) as caught:
        find_knobs(source)
    assert caught.value.line == line
    assert reason.replace("on 1", "on line 1") in caught.value.reason
    with pytest.raises(KnobError):
        with_knobs(source, {})


def test_names_and_values_that_are_not_declared_are_refused() -> None:
    with pytest.raises(KnobError, match="no knob is named 'TILES'") as caught:
        with_knobs(SOURCE, {"TILES": "8"})
    assert caught.value.line == 0
    for value in ("9", "", "8 ", "8; int x = 1"):
        with pytest.raises(KnobError, match="line 3: TILE cannot be"):
            with_knobs(SOURCE, {"TILE": value})
    with pytest.raises(KnobError, match="declares none"):
        with_knobs("", {"TILE": "8"})


def test_the_limits_are_the_last_that_is_allowed() -> None:
    def knobs(count: int, values: int) -> str:
        listed = " ".join(map(str, range(values)))
        return "".join(f"#define K{n} 0  // knob: {listed}\n" for n in range(count))

    assert space_size(find_knobs(knobs(MAX_KNOBS, MAX_VALUES))) == MAX_VALUES**MAX_KNOBS
    with pytest.raises(KnobError, match=f"line {MAX_KNOBS + 1}: .*one knob too many"):
        find_knobs(knobs(MAX_KNOBS + 1, 2))
    with pytest.raises(KnobError, match=f"has {MAX_VALUES + 1} values"):
        find_knobs(knobs(1, MAX_VALUES + 1))


@pytest.mark.parametrize(
    "text", ['R"(', "/*", '"', "'", "//\\", " ", "a=", "#define ", "1'", "const ", '")', "*/"]
)
def test_hostile_text_of_the_largest_size_is_read_quickly(text: str) -> None:
    source = (text * (256 * 1024))[: 256 * 1024] + "  // knob: 1 2\n"
    started = time.process_time()
    with contextlib.suppress(KnobError):
        find_knobs(source)
    assert time.process_time() - started < 5.0  # seconds; milliseconds unless it is quadratic


def test_the_shipped_knobs_can_be_read_and_changed() -> None:
    sources = sorted(catalog_folder().glob("*/kernels/tunable.*"))
    assert sources
    for path in sources:
        source = path.read_text()
        last = {knob.name: knob.values[-1] for knob in find_knobs(source)}
        assert last, path
        assert values_of(with_knobs(source, last)) == last
