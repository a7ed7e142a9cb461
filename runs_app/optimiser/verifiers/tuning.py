"""Carries a tuning out: every command a stored call, several at a time, within its cap."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Max, QuerySet, Sum

from gpu_runner.data import codec
from runs_app.core.errors import SubmissionError
from runs_app.core.text import storable
from runs_app.models import LanguageModel, LanguageModelCall, Tuning, VerifierPrompt
from runs_app.optimiser.evolve import budget, prompts, verifiers
from runs_app.optimiser.evolve.config import Budget
from runs_app.optimiser.evolve.judging import VERIFIERS
from runs_app.optimiser.evolve.tuning import Generation, Plan, Purpose, Tuner, Variant, Want
from runs_app.optimiser.selectors.runs import callable_model
from runs_app.optimiser.selectors.spending import known_sum, total_usd
from runs_app.optimiser.services.calls import answer_call, interrupt_call, spec_of
from runs_app.optimiser.verifiers.tuning_examples import examples_for

VOTE_TOKENS, IMPROVE_TOKENS = 4096, 8192
FAILURES_IN_A_ROW = 5
BY_HAND = "stopped manually"

_POLL_S = 0.5
_SEED_BITS = 31
_STATUS = LanguageModelCall.Status
_UNANSWERED = (_STATUS.WAITING, _STATUS.SENT)
_MODELS_OWN = ("refused", "empty")  # failures that say something about the prompt


@dataclass(frozen=True, kw_only=True)
class TuningRequest:
    """What a person wants tuned, and the most that it may cost."""

    verifier: str  # name of the verifier whose prompt it is
    model: str  # name of the language model that votes and writes prompts
    generations: int = 5
    population: int = 4  # prompts of a generation
    examples: int = 30  # kernels to train on
    held_out: int = 20  # kernels to check with
    seed: int = 0
    max_usd: float = 5.0
    concurrency: int = 4  # calls at the same time, at most


Report = Callable[[Tuning, dict[str, object]], None]


def tune(*, request: TuningRequest, clock: Callable[[], datetime], report: Report) -> Tuning:
    """Tune a prompt to the end, or until Ctrl-C; `report` gets each generation's record.

    What was done is stored at each step. Raises `SubmissionError` before anything is stored.
    """
    model = _check(request)
    verifier = request.verifier
    sizes = {"train": request.examples, "held_out": request.held_out}
    examples = examples_for(verifier=verifier, seed=request.seed, **sizes)
    plan = Plan(
        verifier=verifier,
        start=prompt_in_use(verifier),
        generations=request.generations,
        population=request.population,
        seed=request.seed,
    )
    tuning = Tuning.objects.create(
        verifier=verifier,
        language_model=model,
        seed=request.seed,
        examples=[
            {"evaluation": e.key, "task": e.task, "passes": e.passes, "held_out": e.held_out}
            for e in examples
        ],
        created_at=clock(),
    )
    campaign = _Campaign(tuning, model, Tuner(plan, examples), request, clock, report)
    campaign.run()
    return tuning


def prompt_in_use(verifier: str) -> str:
    """Instructions that a run would take now: the tuned ones in use, else the shipped ones."""
    row = VerifierPrompt.objects.filter(verifier=verifier, in_use=True).first()
    return row.text if row is not None else verifiers.instructions(verifier)


@transaction.atomic
def use_prompt(*, prompt: VerifierPrompt) -> None:
    """Have runs that start from now on use this prompt for its verifier."""
    VerifierPrompt.objects.filter(verifier=prompt.verifier, in_use=True).update(in_use=False)
    VerifierPrompt.objects.filter(pk=prompt.pk).update(in_use=True)
    prompt.in_use = True


def _check(request: TuningRequest) -> LanguageModel:
    if request.verifier not in VERIFIERS:
        raise SubmissionError("verifier", f"is not one of {', '.join(VERIFIERS)}")
    for name, least in (("generations", 0), ("population", 1), ("concurrency", 1)):
        if getattr(request, name) < least:
            raise SubmissionError(name, f"must be {least} or more")
    if not 0 <= request.max_usd < float("inf"):
        raise SubmissionError("max-usd", "must be 0 or more")
    return callable_model(request.model)


@dataclass
class _Campaign:
    """One tuning on its way; database and tuner are touched by this thread alone."""

    tuning: Tuning
    model: LanguageModel
    tuner: Tuner
    request: TuningRequest
    clock: Callable[[], datetime]
    report: Report
    pending: deque[Want] = field(default_factory=deque)
    flying: dict[Future[None], tuple[Want, LanguageModelCall]] = field(default_factory=dict)
    stopping: str = ""
    failures: int = 0
    calls: int = 0
    stored: int = 0

    def run(self) -> None:
        """Ask and tell until nothing is left; Ctrl-C waits for calls under way, twice gives up."""
        pool = ThreadPoolExecutor(self.request.concurrency)
        try:
            while self._step(pool):
                pass
        except KeyboardInterrupt:
            self.stopping = BY_HAND
            self._drain(pool)
        except BaseException as error:
            self.stopping = f"it failed: {error}"
            raise
        finally:
            pool.shutdown(wait=False)
            self._finish()

    def _drain(self, pool: ThreadPoolExecutor) -> None:
        """Hear the calls under way out: they are paid."""
        try:
            while self._step(pool):
                pass
        except KeyboardInterrupt:
            for _, call in self.flying.values():
                interrupt_call(call=call, now=self.clock())

    def _step(self, pool: ThreadPoolExecutor) -> bool:
        """Send what may be sent, then learn of what has come; False when nothing is under way."""
        self.pending.extend(self.tuner.ask())
        while self.pending and not self.stopping and len(self.flying) < self.request.concurrency:
            call = self._stored_call(self.pending[0])
            if call is None:
                break
            self.flying[pool.submit(_answer, call.pk)] = (self.pending.popleft(), call)
        if not self.flying:
            return False
        done, _ = wait(self.flying, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        for future in done:
            want, call = self.flying.pop(future)
            future.result()
            self._settle(want, call)
        return True

    def _stored_call(self, want: Want) -> LanguageModelCall | None:
        """The waiting row of a call that the cap allows; None if it must wait, or must not be."""
        wanted = VOTE_TOKENS if want.purpose is Purpose.VOTE else IMPROVE_TOKENS
        spec = spec_of(self.model)
        wanted = min(wanted, spec.max_output_tokens)
        held_usd = sum(call.worst_usd for _, call in self.flying.values())
        allowance = budget.allow(
            Budget(usd=self.request.max_usd),
            budget.Spent((self.tuning.usd or 0.0) + held_usd, 0, 0),
            spec,
            budget.tokens_bound(want.prompt.messages),
            wanted,
        )
        if allowance.refusal or allowance.max_tokens < wanted:
            if not self.flying:
                self.stopping = allowance.refusal or (
                    f"the cap of ${self.request.max_usd:g} leaves no room for another complete call"
                )
            return None
        self.calls += 1
        return LanguageModelCall.objects.create(
            tuning=self.tuning,
            role=want.purpose.value,
            verifier=self.request.verifier,
            generation=int(want.key[1]),
            slot=int(want.key[2]),
            language_model=self.model,
            prompt=want.prompt.name,
            prompt_version=want.prompt.version,
            messages=storable(codec.encode(want.prompt.messages)),
            temperature=0.0 if want.purpose is Purpose.VOTE else 1.0,
            max_tokens=allowance.max_tokens,
            seed=(self.request.seed + self.calls) % 2**_SEED_BITS,
            worst_usd=allowance.worst_usd,
            worst_tokens=allowance.worst_tokens,
            created_at=self.clock(),
        )

    def _settle(self, want: Want, call: LanguageModelCall) -> None:
        self._charge(call)
        answered = call.status == _STATUS.ANSWERED or call.error_kind in _MODELS_OWN
        self.tuner.tell(want, call.response if answered else None)
        self.failures = 0 if answered else self.failures + 1
        if self.failures >= FAILURES_IN_A_ROW and not self.stopping:
            self.stopping = f"{self.failures} calls in a row failed; the last: {call.error}"
        self._store_generations()

    def _charge(self, call: LanguageModelCall) -> None:
        call.refresh_from_db()
        self.tuning.usd = total_usd((self.tuning.usd, call.cost_usd))
        self.tuning.tokens += call.tokens_in + call.tokens_out
        self.tuning.save(update_fields=["usd", "tokens"])

    def _store_generations(self) -> None:
        for generation in self.tuner.generations[self.stored :]:
            record = self._record(generation)
            self.tuning.generations = [*self.tuning.generations, record]
            self.tuning.save(update_fields=["generations"])
            self.stored += 1
            self.report(self.tuning, record)

    def _record(self, generation: Generation) -> dict[str, object]:
        spent = _spent(self.tuning.calls.filter(generation=generation.number))
        best = generation.best
        document: dict[str, object] = {
            "number": generation.number,
            "best": best.slot if best else None,
            "train": self._counted(best, held_out=False),
            "held_out": self._counted(best, held_out=True),
            **spent,
            "prompts": [
                {
                    "slot": variant.slot,
                    "parent": list(variant.parent) if variant.parent else None,
                    "text": variant.text,
                    "problem": variant.problem,
                    "train": self._counted(variant, held_out=False),
                }
                for variant in generation.variants
            ],
        }
        return dict(storable(document))

    def _counted(self, variant: Variant | None, *, held_out: bool) -> dict[str, int] | None:
        count = variant.count(self.tuner.examples, held_out=held_out) if variant else None
        return vars(count) if count else None

    def _finish(self) -> None:
        now = self.clock()
        unsent = self.tuning.calls.filter(status=_STATUS.WAITING)  # a worker would send them
        unsent.update(status=_STATUS.INTERRUPTED, error="it was never sent", ended_at=now)
        spent = _spent(self.tuning.calls.all())
        self.tuning.usd, self.tuning.tokens = spent["usd"], spent["tokens"]
        self.tuning.reason = self.stopping or self.tuner.reason
        self.tuning.ended_at = now
        self.tuning.save(update_fields=["reason", "ended_at", "usd", "tokens"])
        best = self.tuner.best
        if best is not None and best.generation > 0:
            _store_prompt(self.tuning, best.text)


def _spent(calls: QuerySet[LanguageModelCall]) -> dict[str, Any]:
    tokens = Sum(F("tokens_in") + F("tokens_out"), default=0)
    return calls.aggregate(usd=known_sum("cost_usd"), tokens=tokens)


@transaction.atomic
def _store_prompt(tuning: Tuning, text: str) -> VerifierPrompt:
    """The next version of the verifier's prompt; it is not in use yet."""
    rows = VerifierPrompt.objects.filter(verifier=tuning.verifier)
    shipped = prompts.part_version(f"verify_{tuning.verifier}")
    newest = rows.aggregate(newest=Max("version"))["newest"] or shipped
    return VerifierPrompt.objects.create(
        verifier=tuning.verifier,
        version=max(newest, shipped) + 1,
        text=storable(text),
        tuning=tuning,
        created_at=tuning.ended_at or tuning.created_at,
    )


def _answer(call_id: UUID) -> None:
    """In a thread of its own: send the call, or wait for the worker that has taken it."""
    try:
        if not answer_call(call_id=call_id):
            rows = LanguageModelCall.objects.filter(pk=call_id, status__in=_UNANSWERED)
            while rows.exists():
                time.sleep(_POLL_S)
    finally:
        connection.close()
