"""The daemon's options."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from gpu_runner.daemon.config import DaemonConfig, add_arguments, from_arguments, parse_device
from gpu_runner.data.codec import DataError
from gpu_runner.data.verdict import DeviceKind


def parse(*arguments: str, **environment: str) -> DaemonConfig:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return from_arguments(parser.parse_args(arguments), environment)


def test_defaults_and_environment() -> None:
    assert parse().redis_url == "redis://127.0.0.1:6379/0"
    assert parse(REDIS_URL="redis://other/1").redis_url == "redis://other/1"
    assert parse("--redis-url", "redis://x/2", REDIS_URL="redis://y/1").redis_url == "redis://x/2"
    assert (parse().kind, parse().slot_count) == (DeviceKind.CPU, 1)
    assert not parse().allow_unjailed


def test_devices() -> None:
    assert parse_device("cuda") == (DeviceKind.CUDA, 0)
    assert parse_device("cuda:3") == (DeviceKind.CUDA, 3)
    for wrong in ("gpu", "cpu:1", "cuda:", "cuda:-1", ""):
        with pytest.raises(DataError) as caught:
            parse_device(wrong)
        assert caught.value.field == "device"


def test_a_gpu_builds_beside_a_measurement() -> None:
    assert parse("--device", "cuda").slot_count >= 2
    assert parse("--device", "cuda", "--slots", "7").slot_count == 7


@pytest.mark.parametrize(("text", "wanted"), [("", 20 * 2**30), ("0", 0), ("0.5", 2**29)])
def test_what_builds_may_take(text: str, wanted: float) -> None:
    assert parse(KBENCH_CACHE_GIB=text).cache_bytes == wanted


@pytest.mark.parametrize("text", ["-1", "nan", "much", "1 GiB"])
def test_a_size_of_the_cache_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(DataError) as caught:
        parse(KBENCH_CACHE_GIB=text)
    assert caught.value.field == "KBENCH_CACHE_GIB"


def test_nonsense_is_refused() -> None:
    with pytest.raises(DataError, match="slots"):
        DaemonConfig(slots=-1, cache_folder=Path())
    with pytest.raises(DataError, match="drain_timeout_s"):
        DaemonConfig(drain_timeout_s=-1, cache_folder=Path())
