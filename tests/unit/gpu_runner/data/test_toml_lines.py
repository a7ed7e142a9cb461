"""Every field of a TOML text has its line."""

from __future__ import annotations

from gpu_runner.data.formats.toml_lines import field_lines, line_of

TOML = '''# [[workloads]]
"title" = """
[[workloads]]
quotes: "", ""\\""""
name = \'\'\'it\'s\'\'\'
a."b c".d = 1 # = 2
list = [
    1, [2,
    3],
    { x = 1, y = { z = "}]" } },
]
[work]
[work . forward]
bytes = 1979-05-27 07:32:00
[[workloads]]
name = "a"
[workloads.parameters]
N = 1
[[workloads]]
parameters.N = 2
parameters.list = [
    "#",
    2.5]
'''


def test_lines_of_fields() -> None:
    lines = field_lines(TOML)
    expected = {
        "title": 2,
        "name": 5,
        "a.b c.d": 6,
        "list": 7,
        "list[1]": 8,
        "list[1][1]": 9,
        "list[2].y.z": 10,
        "list[2].y.q": 10,
        "work": 12,
        "work.forward.bytes": 14,
        "work.forward.flops": 13,
        "workloads": 15,
        "workloads[0].name": 16,
        "workloads[0].parameters": 17,
        "workloads[0].parameters.N": 18,
        "workloads[1].name": 19,
        "workloads[1].parameters.N": 20,
        "workloads[1].parameters.list[1]": 23,
        "missing": None,
    }
    assert {field: line_of(lines, field) for field in expected} == expected
