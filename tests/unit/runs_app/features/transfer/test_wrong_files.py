"""A file of results with anything wrong is refused by its field, and nothing of it is stored."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from runs_app.features.transfer.models import ResultImport
from runs_app.models import Agent, Device, Submission
from tests import factories as make
from tests.unit.runs_app.features.transfer.measured import (
    exported,
    exported_one,
    forget,
    imported,
    ranked,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

WRONG: list[tuple[str, Any, str]] = [
    ("evaluation", "7", "results[0].evaluation: '7' is not a UUID"),
    ("submission", None, "results[0].submission: must be str, not null"),
    ("source", "", "results[0].source: is empty"),
    ("source", "int a;\0", "results[0].source: contains a NUL character in line 1"),
    ("source_digest", "0" * 64, "results[0].source_digest: doesn't match the source"),
    ("agent", "<b>", "results[0].agent: '<b>' is not a valid name"),
    ("agent", "", "results[0].agent: '' is not a valid name"),
    ("agent_kind", "admin", "results[0].agent_kind: 'admin' is not one of person, agent"),
    ("language_model", "a\nb", "results[0].language_model"),
    ("device", "../cpu", "results[0].device: '../cpu' is not a valid device name"),
    ("device_name", " ", "results[0].device_name: is empty"),
    ("device_name", "x" * 91, "results[0].device_name: has 91 characters"),
    ("device_kind", "tpu", "results[0].device_kind: 'tpu' is not one of"),
    ("device_kind", "cuda", "results[0].language: a cuda device can't run C++"),
    ("direction", "backward", "results[0].source_digest"),
    ("mode", "quick", "results[0].mode: only ranked"),
    ("verdict", "SYSTEM_ERROR", "results[0].verdict: SYSTEM_ERROR doesn't judge"),
    ("verdict", "WRONG_RESULT", "results[0].latency_ns: must be null unless"),
    ("latency_ns", 1.0, "results[0].latency_ns: is 1.0, but"),
    ("latency_ns", None, "results[0].latency_ns: is None, but"),
    ("speedup_best", 1e9, "results[0].speedup_best: is 1000000000.0, but"),
    ("unlisted_speedups", {"eager": -1.0}, "results[0].unlisted_speedups.eager: must be a finite"),
    ("unlisted_speedups", {"eager": "inf"}, "results[0].unlisted_speedups.eager: must be a finite"),
    ("workloads", [], "results[0].workloads: must each have a time if"),
    ("environment", {"a": "x" * 20_001}, "results[0].environment: has 20"),
    ("environment", {"a": "\0"}, "results[0].environment: contains a NUL character in line 1"),
    ("reason", "\ud800", "results[0].reason: contains half a character"),
    ("measured_at", "yesterday", "results[0].measured_at: 'yesterday' is not an ISO 8601 time"),
    ("measured_at", "2026-01-02T03:04:05", "results[0].measured_at: has no UTC offset"),
    ("measured_at", "2999-01-02T03:04:05+00:00", "results[0].measured_at: 2999"),
    ("task", "another", "results[0].task: on this site, the digest belongs to scale"),
    ("colour", "red", "results[0].colour: is not a known field"),
]


def test_a_wrong_record_is_refused_by_its_field_and_nothing_is_stored(tmp_path: Path) -> None:
    version = make.make_task_version()
    ranked(task_version=version)
    ranked(900.0, task_version=version)
    document = exported(tmp_path / "two.json")
    forget()
    for field, value, reason in WRONG:
        first, *others = document["results"]
        refused(tmp_path, {**document, "results": [{**first, field: value}, *others]}, reason)


WORKLOAD: list[tuple[str, Any, str]] = [
    ("name", "n255", "results[0].workloads: 'n255' is not a listed workload"),
    ("name", make.HIDDEN_WORKLOAD, "is not a listed workload"),
    ("name", "n4096", "results[0].workloads: lists a workload twice"),
    ("weight", 0.0, "results[0].workloads[0].weight: must be a finite number greater than 0"),
    ("floor_ns", "inf", "results[0].workloads[0].floor_ns: must be a finite"),
    ("measurement", None, "results[0].workloads: must each have a time"),
    (
        "baselines",
        {"<b>": {"time_ns": 1, "low_ns": 1, "high_ns": 1, "calls": 1}},
        "not a valid baseline",
    ),
]


def test_a_wrong_workload_or_head_is_refused_by_its_field(tmp_path: Path) -> None:
    document = exported_one(tmp_path)
    for field, value, reason in WORKLOAD:
        changed = copy.deepcopy(document)
        changed["results"][0]["workloads"][0][field] = value
        refused(tmp_path, changed, reason)
    changed = copy.deepcopy(document)
    changed["results"][0]["workloads"][1]["measurement"]["low_ns"] = 5000.0
    refused(tmp_path, changed, "must satisfy 0 < low <= time <= high < inf")
    for change, reason in HEAD:
        refused(tmp_path, document | change, reason)
    document["results"][0]["device"] = "nvidia-h100-80gb-hbm3"
    refused(tmp_path, document | {"site": "x" * 40}, "is too long for a board's name")


HEAD: list[tuple[dict[str, Any], str]] = [
    ({"format": "other"}, "format: must be 'kbench-results'"),
    ({"version": 1}, "version: is 1; this version of kbench reads 2"),
    ({"site": "<b>"}, "site: must have"),
    ({"note": "x" * 501}, "note: has 501 characters; the limit is 500"),
    ({"exported_at": ""}, "exported_at: '' is not an ISO 8601 time"),
    ({"results": {}}, "results: must be a list"),
    ({"extra": 1}, "extra: is not a known field"),
]


def refused(folder: Path, document: dict[str, Any], reason: str) -> None:
    """The file is refused for that reason, and nothing of it is stored."""
    path = folder / "wrong.json"
    path.write_text(json.dumps(document))
    before = (Device.objects.count(), Agent.objects.count())
    with pytest.raises(CommandError) as caught:
        imported(path)
    assert reason in str(caught.value)
    assert not Submission.objects.exists()
    assert not ResultImport.objects.exists()
    assert (Device.objects.count(), Agent.objects.count()) == before


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    for name, content, reason in (
        ("a.json", b"{", "is not JSON: line 1"),
        ("a.json", b'{"a": NaN}', "NaN is not a JSON number"),
        ("a.json", b"[1]", "must be an object"),
        ("a.json", b"\xff\xfe", "is not UTF-8"),
        ("a.json", b'{"a":' * 100_000, "is nested too deeply"),
        ("a.json.gz", b"no gzip", "cannot be read"),
        ("a.parquet", b"no parquet", "is not readable Parquet"),
        ("a.csv", b"a,b", "must end in .json, .json.gz or .parquet"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CommandError) as caught:
            imported(tmp_path / name)
        assert reason in str(caught.value)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs_app.features.transfer.files.LARGEST_BYTES", 1 << 20)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b" " * (1 << 22)))
    with pytest.raises(CommandError, match="would be larger than 1 MiB"):
        imported(tmp_path / "a.json.gz")
