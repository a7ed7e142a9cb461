"""WebSockets that show an evaluation, a run, or the queues, as things happen."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import path
from django.utils import timezone

from runs_app.core.messaging import broadcast
from runs_app.core.messaging.broadcast import events, queue_events
from runs_app.core.messaging.hub import hub
from runs_app.core.work.access import find_evaluation
from runs_app.models import EvaluationEvent
from runs_app.optimiser.selectors.runs import EVENTS_AT_ONCE, find_run, run_events, run_summary

NOT_FOUND = 4404  # close code; the socket's counterpart of HTTP's 404
_LARGEST_SEQ = 2**31 - 1


class _ReplayConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Joins a group, replays what `?since=N` missed, then forwards; sends no event twice."""

    channel_layer_alias = ""  # the process's hub listens for all
    group = ""
    last_seq = 0

    async def show(self, found: object | None, group: str) -> None:
        """Follow what was found; refuse with 4404 what does not exist for this user."""
        if found is None:
            await self.accept()  # a browser is told the code of an accepted socket only
            await self.close(NOT_FOUND)
            return
        self.last_seq = self.since(default=0)
        await self.follow(group)

    async def follow(self, group: str) -> None:
        """Join first and read afterwards, so that nothing falls between the two."""
        self.group = group
        self.held: list[tuple[int, str]] | None = []
        await hub().join(group, self)
        await self.accept()
        for event in await database_sync_to_async(self.missed)():
            await self._send_once(event["seq"], json.dumps(event))
        while self.held:
            await self._send_once(*self.held.pop(0))
        self.held = None

    def missed(self) -> list[dict[str, object]]:
        """Stored events after those that the client has seen."""
        raise NotImplementedError

    def since(self, default: int) -> int:
        """Number of the last event that the client has seen."""
        value = parse_qs(self.scope["query_string"].decode("latin-1")).get("since", [""])[0]
        is_number = value.isascii() and value.isdigit()
        return min(int(value[:10]), _LARGEST_SEQ) if is_number else default

    async def hear(self, seq: int, text: str) -> None:
        """Forward what `broadcast` sent, after what was missed."""
        if self.held is not None:
            self.held.append((seq, text))
        else:
            await self._send_once(seq, text)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Ignore what clients send: these sockets only tell."""

    async def disconnect(self, code: int) -> None:
        """Leave the group."""
        if self.group:
            await hub().leave(self.group, self)

    async def _send_once(self, seq: int, text: str) -> None:
        if seq == 0 or seq > self.last_seq:
            self.last_seq = seq or self.last_seq
            # without the layers that parse what a consumer sends: a thousand hear at once
            await self.base_send({"type": "websocket.send", "text": text})


class EvaluationConsumer(_ReplayConsumer):
    """Events of one evaluation, to those who may see it."""

    async def connect(self) -> None:
        """Find it by the address."""
        identity = self.scope["url_route"]["kwargs"]["evaluation_id"]
        find = database_sync_to_async(find_evaluation)
        self.evaluation = await find(identity, self.scope["user"])
        await self.show(self.evaluation, broadcast.evaluation_group(identity))

    def missed(self) -> list[dict[str, object]]:
        """Events of this evaluation."""
        return events(self.evaluation, self.last_seq)


class RunConsumer(_ReplayConsumer):
    """Events of one run, to those who may see it."""

    async def connect(self) -> None:
        """Find it by the address."""
        identity = self.scope["url_route"]["kwargs"]["run_id"]
        find = database_sync_to_async(find_run)
        self.run = await find(identity, self.scope["user"])
        await self.show(self.run, broadcast.run_group(identity))

    def missed(self) -> list[dict[str, object]]:
        """Events of this run; the summary beside each is that of now.

        Of too many to send the first ones come, and the newest: its number tells of the gap, and
        the list of events over HTTP fills it.
        """
        hidden = self.run.task_version.hidden_names
        summary = run_summary(self.run, timezone.now())
        rows = run_events(self.run, self.last_seq, EVENTS_AT_ONCE)
        if len(rows) == EVENTS_AT_ONCE:
            rows += self.run.events.filter(seq__gt=rows[-1].seq).order_by("-seq")[:1]
        return [broadcast.run_message(row, summary, hidden) for row in rows]


class QueueConsumer(_ReplayConsumer):
    """Lifecycle events of all evaluations, and changes of runners."""

    async def connect(self) -> None:
        """Without `?since` begin with what happens from now on."""
        self.last_seq = self.since(default=-1)
        await self.follow(broadcast.QUEUE_GROUP)

    def missed(self) -> list[dict[str, object]]:
        """Lifecycle events of all evaluations."""
        if self.last_seq >= 0:
            return queue_events(self.last_seq)
        newest = EvaluationEvent.objects.order_by("-pk").values_list("pk", flat=True).first()
        self.last_seq = newest or 0
        return []


websocket_urlpatterns = [
    path("ws/evaluations/<uuid:evaluation_id>/", EvaluationConsumer.as_asgi()),
    path("ws/runs/<uuid:run_id>/", RunConsumer.as_asgi()),
    path("ws/queue/", QueueConsumer.as_asgi()),
]
