"""Arithmetic over a workload's parameters."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.formulas import evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 * M * N * K", 2.0 * 3 * 4 * 5),
        ("(M + N) / 2", 3.5),
        ("K // 2 + K % 2", 3.0),
        ("M ** 2", 9.0),
        ("-M + N", 1.0),
        ("min(M, N, K) + max(M, 7)", 10.0),
        ("sqrt(N) + log2(8) + ceil(2.5)", 8.0),
        ("eps * 4", 2.0),
        ("1e3", 1000.0),
        ("0", 0.0),
    ],
)
def test_value(text: str, value: float) -> None:
    assert evaluate(text, {"M": 3, "N": 4, "K": 5, "eps": 0.5}) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "M.bit_length()",
        "[1, 2][0]",
        "lambda: 1",
        "M if N else K",
        "'a' * 3",
        "(lambda: 1)()",
        "max(M, key=1)",
        "open('x')",
        "M @ N",
        "M << 2",
        "(M := 3)",
        "f'{M}'",
        "True and 1",
        "1 < 2",
    ],
)
def test_anything_but_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(DataError) as caught:
        evaluate(text, {"M": 3, "N": 4, "K": 5}, "work.flops")
    assert caught.value.field == "work.flops"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot evaluate"),
        ("2 *", "cannot evaluate"),
        ("1 / 0", "cannot evaluate"),
        ("sqrt(-1)", "cannot evaluate"),
        ("-1", "not a finite number >= 0"),
        ("1e308 * 10", "not a finite number >= 0"),
        ("X", "'X' is not a number among the workload's parameters"),
        ("text", "'text' is not a number among the workload's parameters"),
        ("10 ** 17", "exponent above 16"),
        ("2.5 ** 400", "exponent above 16"),
        ("sqrt(1, 2)", "cannot evaluate"),
    ],
)
def test_a_bad_value_says_why(text: str, reason: str) -> None:
    parameters: dict[str, Any] = {"text": "12"}
    with pytest.raises(DataError) as caught:
        evaluate(text, parameters, "tolerance.reduction")
    assert reason in caught.value.reason
