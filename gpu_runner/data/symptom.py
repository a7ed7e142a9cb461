"""What a wrong output looks like, as a code and as a sentence that says what usually causes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Symptom(StrEnum):
    """Kinds of wrong outputs that their numbers tell apart."""

    NEVER_WRITTEN = "never_written"
    PARTLY_WRITTEN = "partly_written"
    ACCUMULATED = "accumulated"
    READ_BEFORE_SET = "read_before_set"
    OTHER_DTYPE = "other_dtype"
    NOT_A_NUMBER = "not_a_number"
    INFINITE = "infinite"
    FINITE = "finite"
    ZEROS = "zeros"
    REPEATED = "repeated"
    TRANSPOSED = "transposed"
    SHIFTED = "shifted"
    REVERSED = "reversed"
    PERMUTED = "permuted"
    SIGN = "sign"
    FACTOR = "factor"
    OFFSET = "offset"
    FACTOR_BY_LINE = "factor_by_line"
    OFFSET_BY_LINE = "offset_by_line"
    LOWER_PRECISION = "lower_precision"
    OTHER_FORMULA = "other_formula"
    SLIGHTLY_OFF = "slightly_off"
    PART_MISSING = "part_missing"
    LARGE_VALUES = "large_values"
    ONE_SIGN = "one_sign"
    TAIL = "tail"
    REGION = "region"
    SCATTERED = "scattered"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the numbers show, in a sentence that can follow a colon.

    The sentence of a listed workload may name sizes, places and factors; `GENERAL` has one for each
    symptom that names none.
    """

    symptom: Symptom
    text: str


_SET_FIRST = "set it before you add to it"
_GRID = "is the grid, or the loop, large enough?"

GENERAL: Mapping[Symptom, str] = {
    Symptom.NEVER_WRITTEN: "it still holds the bytes from before the call: never written, or only "
    "added to without being set first",
    Symptom.PARTLY_WRITTEN: f"a part still holds the bytes from before the call: {_GRID}",
    Symptom.ACCUMULATED: "it was computed from the bytes that the output held before the call: "
    f"{_SET_FIRST}",
    Symptom.READ_BEFORE_SET: "NaN where the output held NaN before the call: even 0 * NaN is NaN, "
    "so don't read what you never set",
    Symptom.OTHER_DTYPE: "its bytes would be right if the output had a different dtype",
    Symptom.NOT_A_NUMBER: "NaN where a number was expected: 0/0, inf - inf, the root of a "
    "negative number, or memory that was never set",
    Symptom.INFINITE: "infinite where a finite number was expected: an overflow, such as exp "
    "without subtracting the maximum",
    Symptom.FINITE: "finite where NaN or infinity was expected: fmax, fmin, a clamp or fast math "
    "drops them",
    Symptom.ZEROS: "zeros where other values were expected: cleared but never added to, or a guard "
    "that never holds",
    Symptom.REPEATED: "one value repeated where different ones were expected: an index that "
    "does not change, or one thread's result used for all",
    Symptom.TRANSPOSED: "the right values, but with dimensions in the wrong order: check the "
    "output's strides",
    Symptom.SHIFTED: "the right values, but one place off: an index that starts one too early or "
    "too late",
    Symptom.REVERSED: "the right values, but in the opposite order",
    Symptom.PERMUTED: "the right values, but in the wrong places: check how threads are mapped to "
    "elements",
    Symptom.SIGN: "the right values, but with the opposite sign",
    Symptom.FACTOR: "all values are off by the same factor: a scale, or the divisor of a mean",
    Symptom.OFFSET: "all values are off by the same amount: a bias, an epsilon or an initial value",
    Symptom.FACTOR_BY_LINE: "each row or column is off by its own factor: its sum, norm or scale "
    "is wrong",
    Symptom.OFFSET_BY_LINE: "each row or column is off by its own amount: its mean, maximum or "
    "bias is wrong",
    Symptom.LOWER_PRECISION: "errors typical of a lower precision than the task's: TF32, FP16 or "
    "BF16 somewhere along the way",
    Symptom.OTHER_FORMULA: "the error is a smooth function of the value: a different formula, "
    "such as an approximation",
    Symptom.SLIGHTLY_OFF: "only slightly beyond the bound: a different order of summation, one "
    "rounding too many, or a long sum on tensor cores",
    Symptom.PART_MISSING: "as if a term, or a part of a sum, were left out: a loop that ends "
    "early, or a missing addend",
    Symptom.LARGE_VALUES: "wrong only where large values are expected: an overflow, or an "
    "approximation beyond its range",
    Symptom.ONE_SIGN: "wrong only where values of one sign are expected: a branch on the sign",
    Symptom.TAIL: (
        "only the end is wrong: does it handle sizes that are not a multiple of the block?"
    ),
    Symptom.REGION: "only one regular part is wrong: some threads or blocks compute it differently",
    Symptom.SCATTERED: "only a few scattered elements are wrong: a race between threads, or a "
    "special case of the input",
}
"""A sentence for each symptom that tells nothing of sizes, places or values."""
