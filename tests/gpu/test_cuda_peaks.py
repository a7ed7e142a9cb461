"""The probe of a GPU's peaks finds what its maker promises, and no more than is possible."""

from __future__ import annotations

import pytest

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.device import (
    PEAKS,
    Peak,
    cuda_devices,
    device_name,
    driver_peak,
    first_gpu,
    generous_peak,
)
from gpu_runner.supervisor.doctor import measure_peaks
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.tools.calibrate import Calibration, calibrated
from tests.bench.evaluations import make_config

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> SupervisorConfig:
    cache = tmp_path_factory.mktemp("cache")
    return make_config(DeviceKind.CUDA, cache)


@pytest.fixture(scope="module")
def measured(config: SupervisorConfig) -> Calibration:
    text, facts = measure_peaks(config)
    print(text)
    assert facts["device"] == config.device
    found = calibrated(config)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def limit() -> Peak:
    found = generous_peak(DeviceKind.CUDA, first_gpu())
    assert found is not None
    return found


@pytest.mark.parametrize("stream", ["read", "copy"])
def test_streams_come_near_the_memorys_bandwidth(
    stream: str, measured: Calibration, limit: Peak
) -> None:
    assert 0.5 < measured.bytes_per_s[stream] / limit.bytes_per_s <= 1.05


def test_the_cache_is_faster_than_memory(measured: Calibration) -> None:
    assert measured.bytes_per_s["cache"] > measured.bytes_per_s["read"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_arithmetic_comes_near_its_limit(
    dtype: str, measured: Calibration, limit: Peak, config: SupervisorConfig
) -> None:
    sheet = PEAKS.get(device_name(config.kind, config.index), limit)
    rate = measured.peak().flops[dtype]
    assert rate / sheet.flops[dtype] > 0.5
    assert rate / limit.flops[dtype] <= 1.05


def test_tensor_cores_are_faster_where_there_are_any(measured: Calibration) -> None:
    if "float16_tensor" not in measured.flops:
        pytest.skip("the probe has loops for tensor cores from compute capability 8.0 on")
    for dtype in ("float16", "bfloat16"):
        assert measured.flops[f"{dtype}_tensor"] > measured.flops[dtype]
    assert measured.flops["tf32_tensor"] > measured.flops["float32"]


def test_the_driver_agrees_with_the_data_sheet(config: SupervisorConfig) -> None:
    sheet = PEAKS.get(device_name(config.kind, config.index))
    if sheet is None:
        pytest.skip("this GPU is not in the table")
    driver = driver_peak(config.index)
    assert driver.bytes_per_s == pytest.approx(sheet.bytes_per_s, rel=0.1)
    assert driver.flops["float32"] == pytest.approx(sheet.flops["float32"], rel=0.25)
