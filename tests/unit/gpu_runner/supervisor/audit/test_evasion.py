"""Sources that treat sanitizers and profilers specially."""

from __future__ import annotations

import pytest

from gpu_runner.data.integrity import AuditState
from gpu_runner.supervisor.audit.audit import evasion
from tests.unit.gpu_runner.data.preprocessing import passes


def test_source_that_minds_tools_is_suspicious_with_its_line() -> None:
    found = evasion('int a;\n__attribute__((no_sanitize("address"))) void f();\n', [])
    assert [c.state for c in found] == [AuditState.SUSPICIOUS]
    assert "line 2" in found[0].reason
    assert evasion('extern "C" void f(float* sanitized) {}', []) == []


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("int a; \\\n\n#ifdef __SANI\\\nTIZE_ADDRESS__\n#endif\n", 3),
        ("#define PASTE(a, b) a##b\nint b;\nint PASTE(__as, an_handler)();\n", 3),
        ("#include <sys/cdefs.h>\nint a;\nint __CONCAT(__as, an_handler)();\n", 3),
    ],
)
def test_names_that_are_put_together_are_found(source: str, line: int) -> None:
    [found] = evasion(source, passes(source))
    assert f"line {line} names" in found.reason
