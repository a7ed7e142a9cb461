"""One attempt at a call: what is sent, and what the answer amounts to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx2
import openai

from runs_app.optimiser.llm import failure
from runs_app.optimiser.llm.endpoint import Endpoint
from runs_app.optimiser.llm.errors import CallError, CallInterrupted, MissingKey, StopCall, Usage
from runs_app.optimiser.llm.metering import Meter
from runs_app.optimiser.llm.reading import Answer, Garbage, read
from runs_app.optimiser.llm.tokens import Message
from runs_app.optimiser.llm.wire import connection

MAX_REASON = 400
_SHORTEST_SECRET = 12  # chosen: such as "token-abc123" of a gateway; nobody writes it into a kernel
_SHORTEST_IN_ERRORS = 4  # chosen: "x" taken out of a reason leaves no reason
PROGRESS_EVERY_S = 0.5
Progress = Callable[[str], object]
BROKEN = (openai.APIError, httpx2.HTTPError, httpx2.InvalidURL, Garbage, StopCall)


@dataclass(frozen=True, kw_only=True)
class Completion:
    """An answer with text. `finish_reason` is the endpoint's, "cut" if more came than is kept."""

    text: str
    finish_reason: str
    usage: Usage
    model: str  # as the endpoint named it
    attempts: int


@dataclass(kw_only=True)
class Call:
    """What is asked, and how an attempt to ask it goes."""

    endpoint: Endpoint
    messages: list[Message]
    temperature: float | None
    max_tokens: int
    seed: int | None
    call_id: str
    on_progress: Progress | None
    clock: Callable[[], float]
    ends_at: float  # on that clock
    meter: Meter = field(init=False)
    _told_at: float = field(init=False, default=-math.inf)

    def __post_init__(self) -> None:
        self.meter = Meter(self.endpoint, self.messages, self.max_tokens)

    def body(self) -> dict[str, object]:
        """The JSON body of the request."""
        body: dict[str, object] = {
            "model": self.endpoint.api_name,
            "messages": self.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            self.endpoint.token_parameter: self.max_tokens,
            "seed": self.seed,
            "temperature": self.temperature if self.endpoint.supports_temperature else None,
        }
        body |= self.endpoint.extra
        return {name: value for name, value in body.items() if value is not None}

    def attempt(self, number: int) -> Completion | CallError:
        """Send once. An error is returned: raised here, what holds the key would hang on it."""
        answer = Answer()
        error = self._send(answer) or self._judge(answer)
        if error is not None:
            error.attempts = number
            error.reason = self._without_key(error.reason, _SHORTEST_IN_ERRORS)[:MAX_REASON]
            error.text = self._without_key(error.text, _SHORTEST_SECRET)
            error.args = (error.reason,)
            return error
        return Completion(
            text=self._without_key(answer.text, _SHORTEST_SECRET),
            finish_reason="cut" if answer.is_cut else answer.finish_reason or "unknown",
            usage=self.meter.usage(answer),
            model=self._without_key(answer.model, _SHORTEST_SECRET) or self.endpoint.api_name,
            attempts=number,
        )

    def _send(self, answer: Answer) -> CallError | None:
        """Send, and read into `answer`; the error if it does not come to its end."""
        try:
            with connection(self.endpoint, self.call_id, self.clock, self.ends_at) as client:
                stream = client.post(
                    "/chat/completions",
                    body=self.body(),
                    cast_to=object,
                    stream=True,
                    stream_cls=openai.Stream[object],
                )
                return self._read(stream, answer)
        except openai.APIStatusError as error:
            return failure.of_status(error, datetime.now(UTC), self.meter.usage(answer))
        except MissingKey as error:
            return error.with_traceback(None)
        except BROKEN as error:
            return failure.of_connection(error, self.meter.usage(answer))

    def _read(self, stream: openai.Stream[object], answer: Answer) -> CallError | None:
        try:
            with stream:
                read(stream, answer, self._tell)
        except BROKEN as error:
            if type(error) is openai.APIError and not answer.is_answer:
                return failure.of_document(error.body)
            return failure.of_answer(error, self.meter.usage(answer), answer.text)
        return None

    def _tell(self, answer: Answer) -> None:
        """Pass the text on, at most twice a second; raises what the caller's function raises."""
        now = self.clock()
        if self.on_progress is not None and now - self._told_at >= PROGRESS_EVERY_S:
            self._told_at = now
            self.on_progress(answer.text)

    def _judge(self, answer: Answer) -> CallError | None:
        """What is wrong with an answer that came to its end; None if it can be used."""
        if answer.form == "page":
            return CallError("the endpoint sent an HTML page: check the base URL", "garbage")
        if answer.error and not answer.is_answer:
            return failure.of_document(answer.error)
        usage = self.meter.usage(answer)
        text = answer.text
        if answer.refusal or answer.finish_reason == "content_filter":
            said = failure.explained(answer.refusal)
            return CallError(f"the language model refused{said}", "refused", usage=usage, text=text)
        if answer.form != "nothing" and not answer.is_answer:
            return CallError("the endpoint sent no chat completion", "garbage", usage=usage)
        if not text.strip():
            return CallError(f"the answer has no text{why_empty(answer)}", "empty", usage=usage)
        is_whole = answer.form == "document" or answer.is_cut
        if not (is_whole or answer.finish_reason or answer.usage):
            return CallInterrupted("the answer broke off partway through", usage, text)
        return None

    def _without_key(self, text: str, shortest: int) -> str:
        """Take the key out of the endpoint's words, if it has so many characters: some repeat it.

        A short one guards nothing, such as the "x" or "EMPTY" of a model on the same host, and
        taking it out of an answer would spoil kernels.
        """
        try:
            key = self.endpoint.key()
        except MissingKey:
            return text
        return text.replace(key, "[key]") if len(key) >= shortest else text


def why_empty(answer: Answer) -> str:
    """What is known of an answer without text, in brackets."""
    facts = ["only reasoning"] if answer.unseen_bytes else []
    facts += [f"finish_reason {answer.finish_reason}"] if answer.finish_reason else []
    return f" ({', '.join(facts)})" if facts else ""
