"""The peak of another process's private memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.supervisor.audit.facts import PeakMemory


def status(folder: Path, **kilobytes: int) -> None:
    lines = [f"{name}:\t{value} kB" for name, value in kilobytes.items()]
    (folder / "status").write_text("Name:\trunner\n" + "\n".join(lines) + "\n")


def test_pages_of_files_and_shared_memory_do_not_count(tmp_path: Path) -> None:
    status(tmp_path, VmHWM=9000, VmRSS=5000, RssFile=100, RssShmem=0)
    peak = PeakMemory(tmp_path)
    peak.begin()
    assert (tmp_path / "clear_refs").read_text() == "5"
    status(tmp_path, VmHWM=9000, VmRSS=6000, RssFile=200, RssShmem=900)
    assert peak.taken() == 3000 << 10


def test_less_than_linux_counts_is_nothing(tmp_path: Path) -> None:
    status(tmp_path, VmHWM=5000, VmRSS=5000, RssFile=0, RssShmem=0)
    peak = PeakMemory(tmp_path)
    peak.begin()
    status(tmp_path, VmHWM=5200, VmRSS=5100, RssFile=0, RssShmem=0)
    assert peak.taken() == 0


def test_a_host_that_does_not_tell_raises(tmp_path: Path) -> None:
    status(tmp_path, VmRSS=5000)
    with pytest.raises(OSError, match="VmHWM"):
        PeakMemory(tmp_path).begin()
