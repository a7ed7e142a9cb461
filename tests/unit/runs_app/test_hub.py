"""One member of a group tells all watchers of a process."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.layers import get_channel_layer

from runs_app.messaging.hub import hub


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
