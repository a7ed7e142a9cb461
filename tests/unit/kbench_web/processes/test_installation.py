"""Which programs an installation has, with and without runners of its own."""

from __future__ import annotations

import pytest

from kbench_web.processes import installation

LOGIN = "redis://runner-1:secret@127.0.0.1:6380/0"
OURS = {
    "PATH": "/bin",
    "HOME": "/home/kbench",
    "LC_ALL": "C",
    "CUDA_HOME": "/usr/local/cuda",
    "KBENCH_CACHE": "/cache",
    "DATABASE_URL": "postgres://kbench:secret@db/kbench",
    "REDIS_URL": "redis://site:secret@127.0.0.1:6379/0",
    "KBENCH_RUNNERS_REDIS_URL": "redis://site:secret@127.0.0.1:6380/0",
    "KBENCH_SECRET_KEY": "secret",
    "KBENCH_KEY_OPENAI": "secret",
    "OPENAI_API_KEY": "secret",
    "NVIDIA_API_KEY": "secret",
    "HOMEBREW_GITHUB_API_TOKEN": "secret",
    "EMAIL_HOST_PASSWORD": "secret",
}


def test_a_site_that_measures_nothing_has_no_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "cuda_devices", lambda: [0, 1])
    names = [each.name for each in installation.programs("127.0.0.1", 8000, call_workers=1)]
    assert names == ["web", "ingest", "runs", "calls"]
    assert [each.name for each in installation.runners(LOGIN)] == ["cpu", "cuda-0", "cuda-1"]


def test_a_runner_gets_its_login_and_nothing_that_is_the_sites() -> None:
    runner, *_ = installation.runners(LOGIN)
    assert runner.variables(OURS) == {
        **{name: OURS[name] for name in ("PATH", "HOME", "LC_ALL", "CUDA_HOME", "KBENCH_CACHE")},
        "REDIS_URL": LOGIN,
        "PYTHONUNBUFFERED": "1",
    }
    assert LOGIN not in runner.command  # others see command lines


def test_the_sites_programs_get_all() -> None:
    for program in installation.programs("127.0.0.1", 8000, call_workers=1):
        assert program.variables(OURS) == OURS | {"PYTHONUNBUFFERED": "1"}
