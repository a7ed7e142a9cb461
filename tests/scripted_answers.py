"""What the scripted endpoint is asked and what it answers, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

MODEL = "scripted-1"  # as which this endpoint names itself


@dataclass(kw_only=True)
class Asked:
    """One request as it arrived; `at` is seconds since the epoch, header names are lower case."""

    number: int  # from 1, in order of arrival
    path: str
    at: float
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def model(self) -> str:
        """The language model that was asked for."""
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages."""
        return list(self.body.get("messages", []))

    @property
    def prompt(self) -> str:
        """The text of all messages, for scripts that decide by what is asked."""
        return "\n".join(str(message.get("content", "")) for message in self.messages)

    @property
    def temperature(self) -> float | None:
        """The temperature, None if none was sent."""
        return self.body.get("temperature")

    @property
    def call_id(self) -> str:
        """The Idempotency-Key."""
        return self.headers.get("idempotency-key", "")


@dataclass(kw_only=True)
class Answer:
    """What one request is answered with; the default is a good answer, streamed if asked so."""

    text: Any = field(default="", kw_only=False)  # None and lists of parts are sent as they are
    finish_reason: str | None = "stop"
    refusal: str | None = None
    reasoning: str = ""  # sent as reasoning_content, before the text
    usage: dict[str, Any] | Literal["count", "none"] = "count"
    choices: list[Any] | None = None  # instead of the one choice made of the fields above
    delay_s: float = 0.0  # before anything is sent
    chunk_delay_s: float = 0.0  # before each piece of the text
    chunk_chars: int = 16
    comments_s: float = 0.0  # for so long, only keep-alive comments are sent, before the answer
    stream: bool | None = None  # None: as asked for
    status: int = 200
    message: str = "scripted failure"  # of an answer whose status is not 200
    code: str | None = None
    retry_after: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None  # sent as it is, in place of everything above; see content_type
    content_type: str = "application/json"
    drop: Literal["before", "after"] | None = None  # reset: before any byte, after `drop_chunks`
    drop_chunks: int = 2
    error_after: int | None = None  # after so many events, an error event and the end
    done: bool = True  # whether the stream ends with a finish reason, usage and [DONE]


EMPTY = Answer("")
GARBAGE = Answer(body="\x00\x01 no such thing {]", content_type="application/json")
HTML = Answer(body="<html><body>Welcome to the proxy</body></html>", content_type="text/html")
HUGE = Answer("x" * 200_000, chunk_chars=4000)


def used(asked: Asked, answer: Answer) -> dict[str, Any] | None:
    """The usage to report: a token for four characters, unless the answer says otherwise."""
    if answer.usage == "none":
        return None
    if isinstance(answer.usage, dict):
        return answer.usage
    tokens_in = len(asked.prompt) // 4 + 1
    reasoning = len(answer.reasoning) // 4
    tokens_out = len(str(answer.text or answer.refusal or "")) // 4 + 1 + reasoning
    return {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def whole(asked: Asked, answer: Answer) -> dict[str, Any]:
    """The answer as one document."""
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    document = envelope(asked, "chat.completion", [choice], answer)
    usage = used(asked, answer)
    return document | ({"usage": usage} if usage is not None else {})


def events(asked: Asked, answer: Answer) -> list[dict[str, Any]]:
    """The answer as events: role, reasoning, pieces of text, finish reason, usage."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    if answer.reasoning:
        deltas.append({"reasoning_content": answer.reasoning})
    if answer.refusal:
        deltas.append({"refusal": answer.refusal})
    if isinstance(answer.text, str):
        starts = range(0, len(answer.text), answer.chunk_chars)
        deltas += [{"content": answer.text[at : at + answer.chunk_chars]} for at in starts]
    else:
        deltas.append({"content": answer.text})
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if answer.done:
        choices.append({"index": 0, "delta": {}, "finish_reason": answer.finish_reason})
    kind = "chat.completion.chunk"
    listed = [envelope(asked, kind, [choice], answer) for choice in choices]
    usage = used(asked, answer) if answer.done else None
    if usage is not None and asked.body.get("stream_options", {}).get("include_usage"):
        listed.append(envelope(asked, kind, [], answer) | {"usage": usage})
    return listed


def envelope(asked: Asked, kind: str, choices: list[Any], answer: Answer) -> dict[str, Any]:
    """What surrounds choices in documents and events."""
    choices = answer.choices if answer.choices is not None else choices
    head = {"id": f"scripted-{asked.number}", "object": kind, "created": int(asked.at)}
    return head | {"model": MODEL, "choices": choices}
