"""What tools say of a submission, where the submission prints beside it."""

from __future__ import annotations

import time

from gpu_runner.supervisor.audit.sanitizer import device_findings
from gpu_runner.supervisor.audit.sanitizer_report import memory_findings, undefined_findings


def test_what_a_submission_prints_neither_hides_nor_ends_a_report() -> None:
    """Words before a line, a parameter that there is none of, and lines without an end."""
    hidden = "words kernel.cpp:9:3: runtime error: load of null pointer of type 'f'\n"
    assert [f.breaks for f in undefined_findings(hidden)] == [True]
    assert len(undefined_findings("glued" + hidden.removeprefix("words "), source_only=True)) == 1
    argument = "kbench: read of 1 bytes, 1 bytes behind argument 9\n"
    fault = "==7==ERROR: AddressSanitizer: heap-buffer-overflow on 0x1\n"
    [found] = memory_findings(argument + fault, ["A"])
    assert "heap-buffer-overflow" in found.words
    began = time.process_time()
    for unit in ("a", "a:", ":1", " ", "\n", "kernel.cpp:", " in ", "+0x", "AddressSanitizer "):
        report = unit * ((1 << 20) // len(unit))
        assert undefined_findings(report) == []
        memory_findings(report, ["A"])
        device_findings("========= " + report)
    assert time.process_time() - began < 30
