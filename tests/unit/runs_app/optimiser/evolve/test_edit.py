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


def test_a_copy_that_an_earlier_block_wrote_is_no_second_place() -> None:
    copy = "#define N 4\nvoid g(int* a) {\n        a[i] = 0;\n}"
    text = block("#define N 4", copy) + block("        a[i] = 0;", "        a[i] = 2;")
    assert apply_edits(SOURCE, text) == SOURCE.replace("a[i] = 0", "a[i] = 2").replace(
        "#define N 4", copy
    )


def test_lines_that_a_block_keeps_are_still_the_sources() -> None:
    head = "    for (int i = 0; i < N; ++i) {"
    kept = block(f"{head}\n        a[i] = 0;", f"{head}\n        a[i] = 2;")
    with pytest.raises(EditError, match="match 2 places"):
        apply_edits(SOURCE, kept + block(head, "    for (;;) {"))


def test_the_sources_own_come_first_with_other_spaces_too() -> None:
    copy = "#define N 4\n// a[i] += 1;\na[i]  =  0;"
    text = block("#define N 4", copy) + block("a[i]  =  0;", "        a[i] = 7;")
    assert "        a[i] = 7;\n    }" in apply_edits(SOURCE, text)


def test_an_empty_replacement_deletes() -> None:
    text = "<<<<<<< SEARCH\n        a[i] = 0;\n=======\n>>>>>>> REPLACE"
    assert apply_edits(SOURCE, text) == SOURCE.replace("        a[i] = 0;\n", "")


def test_space_is_forgiven_where_one_place_fits() -> None:
    edited = apply_edits(SOURCE, block("a[i]  = 0;  ", "        a[i] = 5;"))
    assert edited == SOURCE.replace("a[i] = 0", "a[i] = 5")
    assert "match 2 places (lines 3, 6)" in error(block("for (int i = 0; i < N; ++i) {", "x"))


def test_failures_name_the_block_and_why() -> None:
    text = block("#define N 4", "#define N 8") + block("        a[i] = 7;", "x") + block("", "x")
    reason = error(text)
    assert "block 2 of 3: its lines are not in the kernel: there is no line 'a[i] = 7;'" in reason
    assert "block 3 of 3: it searches for nothing" in reason
    assert "block 1" not in reason
    apart = "#define N 4\n        a[i] = 0;"
    assert "not one after the other" in error(block(apart, "x"))


def test_torn_blocks() -> None:
    assert "no line '>>>>>>> REPLACE'" in error("<<<<<<< SEARCH\n#define N 4\n=======\n#define")
    assert "no line '======='" in error("<<<<<<< SEARCH\n#define N 4\n")
    assert "neither" in error("just words")
    assert "change nothing" in error(block("#define N 4", "#define N 4"))
    assert "blocks; 64 are allowed" in error(block("#define N 4", "#define N 8") * 65)


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


def test_a_stated_line_decides_between_equal_places() -> None:
    hunk = (
        "@@ -6,1 +6,1 @@\n-    for (int i = 0; i < N; ++i) {\n+    for (int i = 1; i < N; ++i) {\n"
    )
    edited = apply_edits(SOURCE, hunk).splitlines()
    assert edited[2] == SOURCE.splitlines()[2]
    assert "int i = 1" in edited[5]


def test_has_edits() -> None:
    assert has_edits(DIFF)
    assert has_edits(block("a", "b"))
    assert not has_edits(SOURCE)
