"""Call a language model once: taken in the database before it is sent, stored when it ends."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from runs_app.core.errors import NotAllowed, SubmissionError
from runs_app.core.messaging import broadcast, queues
from runs_app.core.text import storable
from runs_app.models import LanguageModel, LanguageModelCall, Run
from runs_app.optimiser.evolve.budget import cost_usd, worst_usd
from runs_app.optimiser.evolve.config import ModelSpec
from runs_app.optimiser.llm.endpoint import Endpoint
from runs_app.optimiser.llm.errors import CallError, StopCall, Usage
from runs_app.optimiser.llm.tokens import extra_tokens
from runs_app.optimiser.services import log as run_log
from runs_app.optimiser.services.attempts import RunAttempts
from runs_app.optimiser.services.history import config_of

if TYPE_CHECKING:
    from runs_app.optimiser.llm.client import Completion

log = logging.getLogger(__name__)

_LOOKED_AT = 200  # waiting calls, the oldest first
_SAVED_EVERY = timedelta(seconds=1)
_BEAT_S = 3.0
_STORE_TRIES, _STORE_PAUSE_S = 120, 1.0
_TEST_PROMPT = "Answer with the single word: ready"
_TEST_TOKENS = 1024  # a model that thinks first needs some
_Status = LanguageModelCall.Status
_TEST = "test"
_UNCHARGED: dict[str, object] = {
    **{"error": "", "error_kind": ""},
    **{"tokens_in": 0, "tokens_out": 0, "cost_usd": 0.0, "estimated": False},
}
# A tuning that gives a call up has closed its books; a run does so when its strategy has learnt.
_TAKEN_FOR_DEAD = Q(status=_Status.INTERRUPTED, told=False, tuning=None)


def answer_call(*, call_id: UUID | str, clock: Callable[[], datetime] = timezone.now) -> bool:
    """Send a waiting call and store what came; False if there is none to be sent now.

    It is the call of that id, unless another run has fewer under way and waits too: then the oldest
    of that run takes its turn, so that no run has all workers. A call is sent by whoever changes
    WAITING to SENT, so never twice; and none is sent of a run that is not running. Whatever may
    have been paid is charged, at its worst if need be.
    """
    call = next(filter(None, (_take(key, clock()) for key in _turns(call_id))), None)
    if call is None:
        return False
    with _Heartbeat(call, clock):
        columns = _answered(call, _Progress(call, clock), clock)
        return _store_patiently(call, columns, clock)


def interrupt_call(*, call: LanguageModelCall, now: datetime) -> bool:
    """End a call whose process fell silent: it may have been paid, so it is charged at its worst.

    What had arrived of the answer is kept.
    """
    reason = f"the process that waited for the answer was silent for {settings.CALL_SILENCE_S} s"
    tokens_in = max(call.worst_tokens - call.max_tokens, 0)
    columns = {
        "status": _Status.INTERRUPTED,
        "error": reason,
        "error_kind": "interrupted",
        "tokens_in": tokens_in,
        "tokens_out": call.worst_tokens - tokens_in,
        "cost_usd": call.worst_usd if _priced(call).is_priced else None,
        "estimated": True,
        "partial": True,
    }
    return _store(call, columns, now)


@transaction.atomic
def try_language_model(*, model: LanguageModel, user: User, now: datetime) -> LanguageModelCall:
    """Queue one short call, so that a person sees whether the endpoint works.

    Raises `SubmissionError` for a language model without endpoint, `NotAllowed` while another
    test of it is under way.
    """
    if not user.is_active:
        raise NotAllowed("", "sign in to test a language model")
    LanguageModel.objects.select_for_update().get(pk=model.pk)
    if not model.is_callable:
        raise SubmissionError("base_url", f"{model.name} has no base URL")
    open_tests = model.calls.filter(role=_TEST, status__in=(_Status.WAITING, _Status.SENT))
    if open_tests.exists():
        raise NotAllowed(
            "", "a test of this language model is already under way: wait until it ends"
        )
    spec = spec_of(model)
    max_tokens = min(_TEST_TOKENS, model.max_output_tokens)
    worst_in = len(_TEST_PROMPT) + 100 + spec.extra_tokens
    call = LanguageModelCall.objects.create(
        role=_TEST,
        language_model=model,
        messages=[{"role": "user", "content": _TEST_PROMPT}],
        temperature=0.0,
        max_tokens=max_tokens,
        worst_usd=worst_usd(spec, worst_in, max_tokens),
        worst_tokens=worst_in + max_tokens,
        created_at=now,
    )
    transaction.on_commit(lambda: queues.enqueue_call(call.pk))
    return call


def spec_of(model: LanguageModel) -> ModelSpec:
    """A language model as a run that starts now sees it."""
    return ModelSpec(
        name=model.name,
        price_in_usd=model.price_in_usd,
        price_out_usd=model.price_out_usd,
        max_output_tokens=model.max_output_tokens,
        extra_tokens=extra_tokens(model.extra),
    )


def endpoint_of(model: LanguageModel) -> Endpoint:
    """Where a language model is called; raises `ValueError` naming a column that is wrong."""
    return Endpoint(
        name=model.name,
        api_name=model.api_name or model.name,
        base_url=model.base_url,
        key_variable=model.key_variable,
        max_output_tokens=model.max_output_tokens,
        extra=model.extra,
        token_parameter=cast(Literal["max_tokens", "max_completion_tokens"], model.token_parameter),
        supports_temperature=model.supports_temperature,
        timeout_s=float(model.timeout_s),
    )


def _turns(call_id: UUID | str) -> Iterator[UUID | str]:
    """Whose turn it is: the call itself, or first those of runs that have fewer under way.

    A job whose call was sent in the turn of another one serves whoever waits now, so there are as
    many jobs as calls that wait.
    """
    open_calls = LanguageModelCall.objects.filter(run__status=Run.Status.RUNNING).order_by()
    under_way = Counter(open_calls.filter(status=_Status.SENT).values_list("run", flat=True))
    waiting: dict[UUID, UUID] = {}
    rows = open_calls.filter(status=_Status.WAITING).order_by("created_at", "number")
    for key, run_id in rows.values_list("pk", "run")[:_LOOKED_AT]:
        waiting.setdefault(run_id, key)
    own = LanguageModelCall.objects.filter(pk=call_id, status=_Status.WAITING)
    own_run = own.values_list("run", flat=True).first()
    if own.exists():
        mine = under_way[own_run] if own_run else 0
        fewer = [r for r in waiting if r != own_run and under_way[r] < mine]
        yield from (waiting[r] for r in sorted(fewer, key=lambda r: under_way[r]))
        yield call_id
    else:
        yield from (waiting[r] for r in sorted(waiting, key=lambda r: under_way[r]))


@transaction.atomic
def _take(call_id: UUID | str, now: datetime) -> LanguageModelCall | None:
    waiting = LanguageModelCall.objects.filter(pk=call_id, status=_Status.WAITING)
    call = waiting.select_related("language_model").first()
    if call is None:
        return None
    # the run's row is locked as in `pause_run`: what is paused stays unsent
    if call.run_id is not None and run_log.lock(call.run_id).status != Run.Status.RUNNING:
        return None
    taken = waiting.update(status=_Status.SENT, sent_at=now, heard_at=now)
    call.status, call.sent_at = _Status.SENT, now
    return call if taken else None


def _measurer(call: LanguageModelCall, clock: Callable[[], datetime]) -> RunAttempts | None:
    """For kernels that a command tries; None where it may try none."""
    may_try = call.run is not None and call.language_model.attempts > 0
    return RunAttempts(call, clock) if may_try else None


def _answered(
    call: LanguageModelCall, on_progress: Callable[[str], None], clock: Callable[[], datetime]
) -> dict[str, object]:
    """Columns of a call that has ended, one way or another."""
    from runs_app.optimiser.llm.client import (  # slow to import, and only workers call
        ATTEMPTS,
        complete,
    )

    priced = _priced(call)  # before it is sent: nothing may come between an answer and its row
    is_test = call.role == _TEST  # somebody waits to see what is wrong
    try:
        completion = complete(
            endpoint_of(call.language_model),
            call.messages,
            temperature=call.temperature,
            max_tokens=call.max_tokens,
            seed=call.seed,
            call_id=str(call.pk),
            on_progress=on_progress,
            most_attempts=1 if is_test else ATTEMPTS,
            measurer=_measurer(call, clock),
        )
    except CallError as error:
        return _failed(error, priced)
    except ValueError as error:
        return {"status": _Status.FAILED, "error": str(error), "error_kind": "bad_request"}
    return _completed(completion, priced)


def _completed(completion: Completion, priced: ModelSpec) -> dict[str, object]:
    return {
        "status": _Status.ANSWERED,
        "response": completion.text,
        "partial": completion.finish_reason in ("length", "cut"),
        "finish_reason": completion.finish_reason[:30],
        "served_by": completion.model[:150],
        "attempts": completion.attempts,
        **_charged(completion.usage, priced),
    }


def _failed(error: CallError, priced: ModelSpec) -> dict[str, object]:
    interrupted = error.kind == "interrupted"
    return {
        "status": _Status.INTERRUPTED if interrupted else _Status.FAILED,
        "error": error.reason,
        "error_kind": error.kind,
        "response": error.text,
        "partial": bool(error.text),
        "attempts": error.attempts,
        **(_charged(error.usage, priced) if error.usage is not None else {}),
    }


def _charged(usage: Usage, priced: ModelSpec) -> dict[str, object]:
    return {
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "cost_usd": cost_usd(priced, usage.tokens_in, usage.tokens_out),
        "estimated": usage.estimated,
    }


def _priced(call: LanguageModelCall) -> ModelSpec:
    """The prices of the run's start; those of now without a run, or if the run does not know it."""
    of_now = spec_of(call.language_model)
    if call.run is None:
        return of_now
    known = {model.name: model for model in config_of(call.run).models}
    return known.get(of_now.name, of_now)


def _store_patiently(
    call: LanguageModelCall, columns: dict[str, object], clock: Callable[[], datetime]
) -> bool:
    """Wait out the absence of the database: what was paid is not lost."""
    for _ in range(_STORE_TRIES):
        try:
            return _store_end(call, columns, clock())
        except (OperationalError, InterfaceError) as error:
            log.warning("the end of call %s waits for the database: %s", call.pk, error)
            connection.close()
            time.sleep(_STORE_PAUSE_S)
    return _store_end(call, columns, clock())


@transaction.atomic
def _store_end(call: LanguageModelCall, columns: dict[str, object], now: datetime) -> bool:
    """Store how a call ended, also if it was taken for dead; False if it is too late for that."""
    if _store(call, columns, now):
        return True
    if call.run_id is not None:
        run_log.lock(call.run_id)  # so that no step learns of the call in the meantime
    dead = LanguageModelCall.objects.filter(_TAKEN_FOR_DEAD)
    if _store(call, _UNCHARGED | columns, now, dead):
        return True
    log.warning("call %s had been given up when it ended: %s", call.pk, columns["status"])
    return False


@transaction.atomic
def _store(
    call: LanguageModelCall,
    columns: dict[str, object],
    now: datetime,
    replaced: QuerySet[LanguageModelCall] | None = None,
) -> bool:
    """End a call that is still SENT, or one of `replaced`; False if it is no such call."""
    if replaced is None:
        replaced = LanguageModelCall.objects.filter(status=_Status.SENT)
    stored = replaced.filter(pk=call.pk).update(**storable(columns), ended_at=now, heard_at=now)
    if not stored:
        return False
    run_id = call.run_id
    if run_id is not None:
        transaction.on_commit(lambda: queues.enqueue_advance(run_id))
    return True


@dataclass
class _Progress:
    """Keeps what has arrived of an answer, and shows it; ends a call that was given up."""

    call: LanguageModelCall
    clock: Callable[[], datetime]
    saved_at: datetime | None = None

    def __call__(self, text: str) -> None:
        """Called with the text so far a few times a second; raises `StopCall`."""
        now = self.clock()
        if self.saved_at is not None and now - self.saved_at < _SAVED_EVERY:
            return
        self.saved_at = now
        kept = storable(text)
        rows = LanguageModelCall.objects.filter(pk=self.call.pk)
        try:
            known = self._keep(rows, kept, now)
        except (OperationalError, InterfaceError) as error:
            log.warning("call %s goes on without the database: %s", self.call.pk, error)
            connection.close()
            return
        if not known:
            raise StopCall
        if self.call.run_id is not None:
            payload = {"call": self.call.number, "characters": len(kept)}
            broadcast.send_run_progress(self.call.run_id, payload, now.isoformat())

    @staticmethod
    def _keep(rows: QuerySet[LanguageModelCall], text: str, now: datetime) -> bool:
        """False if nobody waits for the rest."""
        sent = rows.filter(status=_Status.SENT)
        return bool(
            sent.update(response=text, partial=True, heard_at=now)
            or rows.filter(_TAKEN_FOR_DEAD).exists()
        )


class _Heartbeat:
    """Says every few seconds, from a thread, that the process of a call is alive."""

    def __init__(self, call: LanguageModelCall, clock: Callable[[], datetime]) -> None:
        self._call, self._clock = call, clock
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        rows = LanguageModelCall.objects.filter(pk=self._call.pk, status=_Status.SENT)
        while not self._over.wait(_BEAT_S):
            try:
                rows.update(heard_at=self._clock())
            except DatabaseError as error:
                log.warning("call %s cannot be kept alive: %s", self._call.pk, error)
                connection.close()
        connection.close()
