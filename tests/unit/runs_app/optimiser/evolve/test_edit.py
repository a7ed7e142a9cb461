"""Edits are made exactly, or not at all and with a reason."""

from __future__ import annotations

import pytest

from runs_app.optimiser.evolve.edit import EditError, apply_edits, has_edits

SOURCE = """#define N 4
void f(int* a) {
    for (int i = 0; i < N; ++i) {
        a[i] = 0;
    }
    for (int i = 0; i < N; ++i) {
        a[i] += 1;
    }
}
"""


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def error(text: str) -> str:
    with pytest.raises(EditError) as caught:
        apply_edits(SOURCE, text)
    return str(caught.value)


def test_blocks_are_applied_in_order() -> None:
    text = "Idea:\n```\n" + block("        a[i] = 0;", "        a[i] = 2;") + "```\nand\n"
    text += block("        a[i] = 2;", "        a[i] = 3;") + block("#define N 4", "#define N 8")
    edited = apply_edits(SOURCE, text)
    assert edited == SOURCE.replace("a[i] = 0", "a[i] = 3").replace("N 4", "N 8")


def test_the_sources_own_lines_come_before_those_that_an_earlier_block_wrote() -> None:
    copy = "#define N 4\nvoid g(int* a) {\n        a[i] = 0;\n}"
    text = block("#define N 4", copy) + block("        a[i] = 0;", "        a[i] = 2;")
    expected = SOURCE.replace("a[i] = 0", "a[i] = 2").replace("#define N 4", copy)
    assert apply_edits(SOURCE, text) == expected
    copy = "#define N 4\n// a[i] += 1;\na[i]  =  0;"  # with other spaces, too
    text = block("#define N 4", copy) + block("a[i]  =  0;", "        a[i] = 7;")
    assert "        a[i] = 7;\n    }" in apply_edits(SOURCE, text)
    head = "    for (int i = 0; i < N; ++i) {"
    kept = block(f"{head}\n        a[i] = 0;", f"{head}\n        a[i] = 2;")
    assert "match 2 places" in error(kept + block(head, "    for (;;) {"))


def test_space_is_forgiven_where_one_place_fits_and_nothing_deletes() -> None:
    edited = apply_edits(SOURCE, block("a[i]  = 0;  ", "        a[i] = 5;"))
    assert edited == SOURCE.replace("a[i] = 0", "a[i] = 5")
    assert "match 2 places (lines 3, 6)" in error(block("for (int i = 0; i < N; ++i) {", "x"))
    text = "<<<<<<< SEARCH\n        a[i] = 0;\n=======\n>>>>>>> REPLACE"
    assert apply_edits(SOURCE, text) == SOURCE.replace("        a[i] = 0;\n", "")


def test_failures_name_the_block_and_why() -> None:
    first = block("#define N 4", "#define N 8")
    reason = error(first + block("        a[i] = 7;", "x") + block("", "x"))
    assert "block 2 of 3: " in reason
    assert "there is no line 'a[i] = 7;'" in reason
    assert "block 3 of 3: its SEARCH part is empty" in reason
    assert "block 1" not in reason
    for text, words in (
        (block("#define N 4\n        a[i] = 0;", "x"), "all the lines exist"),
        ("<<<<<<< SEARCH\n#define N 4\n=======\n#define", "no line '>>>>>>> REPLACE'"),
        ("<<<<<<< SEARCH\n#define N 4\n", "no line '======='"),
        ("just words", "neither"),
        (block("#define N 4", "#define N 4"), "change nothing"),
        (first * 65, "64 are allowed"),
    ):
        assert words in error(text)


DIFF = """```diff
--- a/kernel.cpp
+++ b/kernel.cpp
@@ -3,3 +3,3 @@ void f
     for (int i = 0; i < N; ++i) {
-        a[i] = 0;
+        a[i] = 9;
     }
@@ @@
-        a[i] += 1;
+        a[i] += 2;

```
Done.
"""


def test_unified_diffs() -> None:
    expected = SOURCE.replace("a[i] = 0", "a[i] = 9").replace("+= 1", "+= 2")
    assert apply_edits(SOURCE, DIFF) == expected
    line = "    for (int i = 0; i < N; ++i) {"
    hunk = f"@@ -6,1 +6,1 @@\n-{line}\n+{line.replace('0', '1')}\n"
    edited = apply_edits(SOURCE, hunk).splitlines()
    assert (edited[2], edited[5]) == (line, line.replace("0", "1"))
    assert (has_edits(DIFF), has_edits(block("a", "b")), has_edits(SOURCE)) == (True, True, False)
