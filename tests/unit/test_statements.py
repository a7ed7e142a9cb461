"""PostgreSQL's tests are chosen by what they send."""

from __future__ import annotations

import pytest

from tests.statements import Sent, chosen, kind_of, kinds_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("SELECT 1 WHERE a = %s", ("x",)), ("SELECT 21 WHERE a = %s", ("y",))),
        (("a IN (%s, %s)", (1, 2)), ("a IN (%s)", (7,))),
        (("VALUES (%s, %s), (%s, %s)", (1, 2, 3, 4)), ("VALUES (%s, %s)", (1, 2))),
        (('SAVEPOINT "s123_x1"', None), ('SAVEPOINT "s9_x20"', None)),
    ],
)
def test_values_make_no_kind(
    one: tuple[str, tuple[object, ...] | None], other: tuple[str, tuple[object, ...] | None]
) -> None:
    assert kind_of(*one) == kind_of(*other)


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "x" * 201, 1 << 31, float("nan"), None])
def test_values_that_a_database_may_mind_do(value: object) -> None:
    assert kind_of("a = %s", (value,)) != kind_of("a = %s", ("x",))
    assert kind_of("a = %s", [[value, 1]]) != kind_of("a = %s", [["x", 1]])


def test_errors_do() -> None:
    assert kind_of("a", None, "IntegrityError") != kind_of("a", None)


FROM = 'SELECT "a"."x", "a"."y" FROM "a" '


def test_a_plain_statement_is_its_parts() -> None:
    whole = kinds_of(FROM + 'WHERE ("a"."x" = %s AND "a"."y" IN (%s, %s)) LIMIT 2', (1, 2, 3))
    parts = [
        'SELECT COUNT(*) FROM "a" WHERE "a"."x" = %s',
        FROM + 'WHERE NOT ("a"."y" IN (%s)) ORDER BY "a"."y" ASC',
    ]
    assert set(whole) < {kind for part in parts for kind in kinds_of(part, (1,))}
    stored = [set(kinds_of(f'UPDATE "{table}" SET "x" = %s', (1,))) for table in "ab"]
    assert not stored[0] & stored[1]


@pytest.mark.parametrize(
    ("statement", "value", "error"),
    [
        (FROM + 'WHERE "a"."x" = %s', "a\0b", ""),
        (FROM + 'WHERE "a"."x" = %s', 1, "IntegrityError"),
        (FROM + 'WHERE JSON_EXTRACT("a"."x", %s) = 1', 1, ""),
        (FROM + 'WHERE "a"."x" IN (SELECT "b"."x" FROM "b" WHERE "b"."x" = %s)', 1, ""),
        (FROM + 'WHERE "a"."x" = %s FOR UPDATE', 1, ""),
        ('SELECT DISTINCT "a"."x" FROM "a" WHERE "a"."x" = %s', 1, ""),
        ('SELECT COUNT("a"."x") AS "n" FROM "a" WHERE "a"."x" = %s GROUP BY "a"."x"', 1, ""),
        ('UPDATE "a" SET "x" = ("a"."x" + %s)', 1, ""),
        ('UPDATE "a" SET "x" = COALESCE("a"."x", %s)', 1, ""),
    ],
)
def test_any_other_is_one_kind(statement: str, value: object, error: str) -> None:
    assert kinds_of(statement, (value,), error) == (kind_of(statement, (value,), error),)


def test_every_kind_is_sent_by_a_chosen_test_and_the_cheapest_are_chosen() -> None:
    sent = {
        "all but one": Sent({"a", "b", "c"}, 0.1),
        "dear": Sent({"a", "b", "c", "d"}, 9.0),
        "one": Sent({"d"}, 0.1),
        "the same": Sent({"d"}, 0.1),
        "nothing": Sent(set(), 0.1),
    }
    assert chosen(sent) == {"all but one", "one"}
