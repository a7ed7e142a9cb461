"""One member of a group tells all watchers of a process."""

from __future__ import annotations

import asyncio
from typing import Any

import msgpack
import pytest
from channels.layers import get_channel_layer
from redis.asyncio import Redis

from runs_app.core.messaging.hub import hub


class Ear:
    """A watcher that remembers, or breaks."""

    def __init__(self, *, breaks: bool = False) -> None:
        self.heard: list[tuple[int, str]] = []
        self._breaks = breaks

    async def hear(self, seq: int, text: str) -> None:
        if self._breaks:
            raise ConnectionError
        self.heard.append((seq, text))


async def send(group: str, seq: int) -> None:
    layer: Any = get_channel_layer()
    await layer.group_send(group, {"type": "x", "group": group, "seq": seq, "text": str(seq)})
    await asyncio.sleep(0.05)


async def test_all_watchers_of_a_group_hear_and_nobody_else() -> None:
    first, second, other, broken = Ear(), Ear(), Ear(), Ear(breaks=True)
    for ear in (broken, first, second):
        await hub().join("one", ear)
    await hub().join("two", other)
    await send("one", 1)
    assert first.heard == second.heard == [(1, "1")]
    assert other.heard == []
    await hub().leave("one", first)
    await hub().leave("one", first)  # twice does no harm
    await send("one", 2)
    assert (len(first.heard), len(second.heard)) == (1, 2)


async def test_a_group_without_watchers_is_left() -> None:
    ear = Ear()
    await hub().join("three", ear)
    layer: Any = get_channel_layer()
    assert any("three" in name for name in layer.groups)
    await hub().leave("three", ear)
    assert not any("three" in name for name in layer.groups)


async def hears(ear: Ear, text: str) -> bool:
    """Whether it hears this text soon."""
    for _ in range(200):
        if any(said == text for _, said in ear.heard):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\xc1garbage",
        msgpack.packb("text"),
        msgpack.packb({"group": "one", "seq": 1}),
        msgpack.packb({"group": ["one"], "seq": 1, "text": "1"}),
        msgpack.packb({"group": "one", "seq": "1", "text": "1"}),
        msgpack.packb({"group": "one", "seq": 1, "text": 1}),
    ],
)
async def test_an_open_socket_hears_what_comes_after_garbage(
    garbage: bytes, redis_url: str, settings: Any
) -> None:
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    config = {"hosts": [redis_url], "prefix": "kbench"}
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": config}}
    ear = Ear()
    await hub().join("one", ear)
    async with Redis.from_url(redis_url) as connection:
        await send("one", 1)
        assert await hears(ear, "1")
        await connection.publish("kbench__group__one", garbage)
        await send("one", 2)
        assert await hears(ear, "2")
    assert ear.heard == [(1, "1"), (2, "2")]
    await hub().leave("one", ear)
    layer: Any = get_channel_layer()
    await layer.flush()


async def test_an_open_socket_hears_what_comes_after_a_broken_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ear = Ear()
    await hub().join("one", ear)
    layer: Any = get_channel_layer()
    receive, failures = layer.receive, [ConnectionError(), OSError()]

    async def broken(channel: str) -> Any:
        if failures:
            raise failures.pop()
        return await receive(channel)

    monkeypatch.setattr(layer, "receive", broken)
    await send("one", 1)
    await send("one", 2)
    assert await hears(ear, "2")
    assert failures == []
