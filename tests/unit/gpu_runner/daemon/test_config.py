"""The daemon's options."""

from __future__ import annotations

import argparse

import pytest

from gpu_runner.daemon import config
from gpu_runner.daemon.config import DaemonConfig, add_arguments, from_arguments, parse_device
from gpu_runner.data.codec import DataError
from gpu_runner.data.verdict import DeviceKind


def parse(*arguments: str, **environment: str) -> DaemonConfig:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return from_arguments(parser.parse_args(arguments), environment)


def test_defaults_and_environment() -> None:
    assert parse(KBENCH_RUNNER_TOKEN="kbr_1").token == "kbr_1"
    assert "kbr_1" not in repr(parse(KBENCH_RUNNER_TOKEN="kbr_1"))
    assert parse(REDIS_URL="redis://other/1").redis_url == "redis://other/1"
    assert parse("--redis-url", "redis://x/2", REDIS_URL="redis://y/1").redis_url == "redis://x/2"
    assert (parse().kind, parse().slot_count) == (DeviceKind.CPU, 1)
    assert not parse().allow_unjailed
    assert parse("--device", "cuda").slot_count >= 2  # a GPU builds beside a measurement
    assert parse("--device", "cuda", "--slots", "7").slot_count == 7


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "first_gpu", lambda: 2)
    assert parse_device("cpu") == (DeviceKind.CPU, 0)
    assert parse_device("cuda") == (DeviceKind.CUDA, 2)
    assert parse_device("cuda:3") == (DeviceKind.CUDA, 3)
    for wrong in ("gpu", "cpu:1", "cuda:", "cuda:-1", ""):
        with pytest.raises(DataError, match=r"^device: "):
            parse_device(wrong)


def test_nonsense_is_refused() -> None:
    for text in ("-1", "nan", "much", "1 GiB"):
        with pytest.raises(DataError, match=r"^KBENCH_CACHE_GIB: "):
            parse(KBENCH_CACHE_GIB=text)
    for arguments, field in (
        (("--slots=-1",), "slots"),
        (("--drain-timeout=-1",), "drain_timeout_s"),
        (("--name", "a b"), "name"),
    ):
        with pytest.raises(DataError, match=rf"^{field}: "):
            parse(*arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "contains no runner login"),
        (["--redis-url", "redis://:secret@host/0"], "contains no runner login"),
        (["--site", "http://kbench.example", "--token", "t"], "must begin with https://"),
        (["--site", "kbench.example", "--token", "t"], "is not a web address such as"),
        (["--site", "https://kbench.example"], "set KBENCH_RUNNER_TOKEN or use --token"),
    ],
)
def test_a_source_of_jobs_that_cannot_be_is_refused_with_what_to_do(
    options: list[str], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        parse(*options).connect("cpu")


def test_events_wait_for_the_site_that_knows_their_jobs() -> None:
    """Else a daemon of another site would send them there, and they would be lost."""
    ways = [
        ("--site", "https://one.example", "--token", "kbr_1"),
        ("--site", "https://two.example", "--token", "kbr_1"),
        ("--site", "https://one.example", "--token", "kbr_2"),
        ("--redis-url", "redis://runner-1:a@host/0"),
        ("--redis-url", "redis://runner-2:a@host/0"),
        ("--spool", "folder"),
    ]
    assert len({parse(*way).outbox("cpu") for way in ways}) == len(ways)
    renewed = parse("--redis-url", "redis://runner-1:b@host:6380/0")
    assert renewed.outbox("cpu") == parse(*ways[3]).outbox("cpu")
