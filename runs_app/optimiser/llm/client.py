"""One call to a language model: streamed, bounded, and sent again only if it was not paid."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from runs_app.optimiser.llm.attempt import Call, Completion, Progress
from runs_app.optimiser.llm.command import ask_command
from runs_app.optimiser.llm.endpoint import HEADER_VALUE, Endpoint
from runs_app.optimiser.llm.errors import CallError
from runs_app.optimiser.llm.tokens import Message
from runs_app.optimiser.llm.tries import Measurer

__all__ = ["Completion", "complete"]

ATTEMPTS = 5
BACKOFF_S = 1.0  # doubled with each attempt
BACKOFF_CAP_S = 30.0
RETRY_AFTER_CAP_S = 60.0  # who asks for more is not asked again by this call
TOTAL_TIMEOUT_S = 3600.0


def complete(  # noqa: PLR0913 - the parameters of a call, and the world it happens in
    endpoint: Endpoint,
    messages: Sequence[Message],
    *,
    temperature: float | None,
    max_tokens: int,
    seed: int | None,
    call_id: str,
    on_progress: Progress | None = None,
    total_timeout_s: float = TOTAL_TIMEOUT_S,
    most_attempts: int = ATTEMPTS,
    measurer: Measurer | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    rng: random.Random | None = None,
) -> Completion:
    """Ask `endpoint` for one answer of at most `max_tokens`, trying again where that is free.

    Sent again, up to `most_attempts` times in all: what found no connection, and what was refused
    with HTTP 408, 429, 500, 502, 503 or 529. Not sent again: whatever the endpoint may charge for,
    so anything whose end is unknown after it went out, and what would fail again.
    `call_id` goes along as Idempotency-Key. `on_progress` gets the text so far at most twice a
    second, also while the language model is thinking; it may raise `StopCall`, and any other
    exception of it ends the call too. `total_timeout_s` bounds all attempts and waits together.
    `measurer` measures kernels that a command tries; endpoints try none.

    Raises CallError, of which CallInterrupted and MissingKey are special cases, and ValueError
    for arguments that are wrong. No exception holds the key.
    """
    if max_tokens < 1:
        raise ValueError("max_tokens: must be at least 1")
    if not messages:
        raise ValueError("messages: must not be empty")
    if not HEADER_VALUE.fullmatch(call_id):
        raise ValueError("call_id: must be printable ASCII without spaces")
    call = Call(
        endpoint=endpoint,
        messages=[sendable(message) for message in messages],
        temperature=temperature,
        max_tokens=min(max_tokens, endpoint.max_output_tokens),
        seed=seed,
        call_id=call_id,
        on_progress=on_progress,
        clock=clock,
        ends_at=clock() + total_timeout_s,
    )
    if endpoint.is_command:
        return ask_command(call, measurer)
    rng = rng or random.Random()  # noqa: S311 - jitter
    attempt = 0
    while True:
        outcome = call.attempt(attempt := attempt + 1)
        if isinstance(outcome, Completion):
            return outcome
        wait_s = waiting(outcome, attempt, rng) if attempt < most_attempts else None
        if wait_s is None or clock() + wait_s > call.ends_at:
            raise outcome
        sleep(wait_s)


def waiting(error: CallError, attempt: int, rng: random.Random) -> float | None:
    """Seconds until the same call may be sent again; None if it may not."""
    asked = error.retry_after_s or 0.0
    if not error.transient or attempt >= ATTEMPTS or asked > RETRY_AFTER_CAP_S:
        return None
    backoff_s = min(BACKOFF_CAP_S, BACKOFF_S * 2.0 ** (attempt - 1))
    return max(asked, backoff_s * rng.uniform(0.5, 1.0))


def sendable(message: Message) -> Message:
    """A copy without lone surrogates, which UTF-8 cannot carry."""
    return {name: text.encode(errors="replace").decode() for name, text in message.items()}
