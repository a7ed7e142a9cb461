"""Admins are warned before the disk is full."""

from __future__ import annotations

import logging
import shutil
from collections import namedtuple
from typing import Any

import pytest
from django.test import Client

from runs_app.features.operations import disk, upkeep
from tests import factories as make

Usage = namedtuple("Usage", "total used free")
GIB = 1 << 30


def has(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(total, total - free, free))


def test_what_is_too_little(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    for total, free, low in (
        (1000 * GIB, 3 * GIB, False),
        (1000 * GIB, 2 * GIB - 1, True),
        (20 * GIB, GIB + 1, False),
        (20 * GIB, GIB - 1, True),
    ):
        has(monkeypatch, total, free)
        assert (disk.low_disk() is not None) is low
    monkeypatch.undo()
    settings.DATA_DIR = "/nowhere"  # a missing folder is no fault
    assert disk.low_disk() is None


@pytest.mark.django_db
def test_admins_read_it_and_others_do_not(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    client.force_login(make.make_admin())
    for free, shown in ((GIB, True), (3 * GIB, False)):
        has(monkeypatch, 1000 * GIB, free)
        for path in ("/operate/", "/queue/"):
            page = client.get(path).content.decode()
            assert ("1.0\xa0GB of 1000.0\xa0GB" in page) is shown
    has(monkeypatch, 1000 * GIB, GIB)
    for other in (Client(), client):
        if other is client:
            other.force_login(make.make_user())
        assert "1000.0\xa0GB" not in other.get("/queue/").content.decode()


@pytest.mark.django_db
def test_the_log_says_it_once_an_hour(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    has(monkeypatch, 1000 * GIB, GIB)
    disk._warn.cache_clear()
    for now_s in (0, 5, 3599, 3600, 3605):
        monkeypatch.setattr(disk.time, "time", lambda now_s=now_s: now_s)
        upkeep.look_after(now=make.NOW)
    found = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len([each for each in found if "nothing more is stored" in each.getMessage()]) == 2
