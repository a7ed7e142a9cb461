"""A deadline is for whoever answers, not for a supervisor that was stopped meanwhile."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from gpu_runner.supervisor.host.channel import Channel, ChannelTimeout


def test_what_has_come_in_time_is_read_late() -> None:
    with closing(Channel()) as channel:
        os.write(channel.child_descriptor, b"done")
        channel.allow(-60)  # this process was stopped for a minute, or its host was suspended
        assert channel.read(4) == b"done"
        with pytest.raises(ChannelTimeout):
            channel.read(1)


def test_what_is_sent_late_is_sent() -> None:
    with closing(Channel()) as channel:
        channel.allow(-60)
        channel.send(b"call")
        assert os.read(channel.child_descriptor, 4) == b"call"
