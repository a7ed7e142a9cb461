"""The optimiser: ask it what to do next, tell it what came back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpu_runner.data.verdict import Mode
from runs_app.evolve import budget, facts
from runs_app.evolve.bottleneck import classify
from runs_app.evolve.config import Budget, Problem, RunConfig
from runs_app.evolve.facts import Fact
from runs_app.evolve.history import AskState, History
from runs_app.evolve.intake import Intake, digest_of
from runs_app.evolve.outcomes import Answer, CallFailure, Evaluated, Move, Outcome
from runs_app.evolve.strategies import make_strategy
from runs_app.evolve.wishes import Ask, Draft, Drop, Finish, Measure, Wish


class Optimizer:
    """One run's strategy over its history. Pure: same seed and facts, same moves."""

    def __init__(self, problem: Problem, config: RunConfig, history: History) -> None:
        """Go on from `history`; raises `DataError` for parameters that the strategy refuses."""
        self.problem, self.config, self.history = problem, config, history
        self.strategy = make_strategy(problem, config)
        self.intake = Intake(problem, config, history)

    def tell(self, outcome: Outcome) -> list[Move]:
        """Learn of an outcome. One that was told before changes nothing."""
        if not self._is_awaited(outcome):
            return []
        match outcome:
            case Answer():
                return self._record(self.intake.answer(outcome))
            case CallFailure():
                return self._record(self.intake.failure(outcome))
            case Evaluated():
                return self._record([Move(fact=self._measured(outcome))])

    def ask(self) -> list[Move]:
        """What to do now. Call it until it returns nothing: one move opens the way to another.

        What has no room now is wished for again later. The run ends when nothing is under way and
        either the budget forbids what is wished for, or there is no wish.
        """
        if self.history.finished is not None:
            return []
        moves: list[Move] = []
        refusals: list[str] = []
        for wish in self.strategy.ask(self.history):
            if not self._has_room(wish):
                continue
            refusal = self._refusal(wish)
            if refusal:
                refusals.append(refusal)
            else:
                moves += self._record(self._moves(wish))
                if isinstance(wish, Finish):
                    break
        if not moves and self._is_idle():
            reason = refusals[0] if refusals else "the strategy has nothing more to ask"
            moves = self._record([_finish(reason, by_budget=bool(refusals))])
        return moves

    def _is_awaited(self, outcome: Outcome) -> bool:
        if isinstance(outcome, Evaluated):
            return outcome.mode in self.history.candidates[outcome.candidate].measuring
        return self.history.questions[outcome.ask].state is AskState.WAITING

    def _record(self, moves: Iterable[Move]) -> list[Move]:
        made = []
        for move in moves:
            self.history.apply(move.fact)
            made.append(move)
        return made

    def _moves(self, wish: Wish) -> list[Move]:
        match wish:
            case Ask():
                return [self._asked(wish)]
            case Draft():
                return self._drafted(wish)
            case Measure():
                return [
                    Move(fact=facts.Measuring(candidate=wish.candidate, mode=wish.mode), wish=wish)
                ]
            case Drop():
                return [Move(fact=facts.Dropped(candidate=wish.candidate, reason=wish.reason))]
            case Finish():
                return [_finish(wish.reason, by_budget=False)]

    def _asked(self, wish: Ask) -> Move:
        allowance = self._allowance(wish)
        fact = facts.Asked(
            number=len(self.history.questions) + 1,
            role=wish.role,
            place=wish.place,
            model=wish.model,
            temperature=wish.temperature,
            prompt=wish.prompt.name,
            prompt_version=wish.prompt.version,
            max_tokens=allowance.max_tokens,
            worst_usd=allowance.worst_usd,
            worst_tokens=allowance.worst_tokens,
            parents=wish.parents,
            about=wish.about,
            verifier=wish.verifier,
            edit=wish.edit,
        )
        return Move(fact=fact, wish=wish)

    def _drafted(self, wish: Draft) -> list[Move]:
        fact = facts.Drafted(
            number=len(self.history.candidates) + 1,
            digest=digest_of(wish.source),
            edit=wish.edit,
            place=wish.place,
            parents=wish.parents,
            knobs=wish.knobs,
            title=wish.title,
        )
        return [Move(fact=fact, wish=wish, source=wish.source)]

    def _measured(self, outcome: Evaluated) -> Fact:
        result = outcome.result
        if result is None:
            return facts.Measured(
                candidate=outcome.candidate,
                mode=outcome.mode,
                verdict="SYSTEM_ERROR",
                reason=outcome.reason,
            )
        candidate = self.history.candidates[outcome.candidate]
        spreads = [w.measurement.relative_half_width for w in result.workloads if w.measurement]
        trial = facts.Measured(
            candidate=outcome.candidate,
            mode=outcome.mode,
            verdict=result.verdict.value,
            reason=result.reason,
            latency_ns=result.latency_ns,
            spread=max(spreads, default=None),
            speedup=result.speedups.get("best"),
            floor_fraction=result.floor_fraction,
            bottleneck=classify(result, self.problem.threshold_pct),
        )
        first = not candidate.is_told or outcome.mode is not Mode.PROFILE
        best = first and result.latency_ns is not None and _beats(result.latency_ns, self.history)
        return replace(trial, best=best)

    def _refusal(self, wish: Wish) -> str:
        """Why the budget forbids a wish; empty if it does not.

        Nothing is drafted that could not be measured.
        """
        if not isinstance(wish, Ask | Draft | Measure):
            return ""
        so_far = budget.spent(self.history)
        if refusal := budget.evaluations_refusal(self._budget, so_far):
            return refusal
        return self._allowance(wish).refusal if isinstance(wish, Ask) else ""

    def _allowance(self, wish: Ask) -> budget.Allowance:
        return budget.allow(
            self._budget,
            budget.spent(self.history),
            self.config.model(wish.model),
            budget.tokens_bound(wish.prompt.messages),
            min(wish.max_tokens or self.config.max_tokens, self.config.max_tokens),
        )

    @property
    def _budget(self) -> Budget:
        return self.history.budget or self.config.budget

    def _has_room(self, wish: Wish) -> bool:
        """Whether it can be done now: a measurement once for each mode, the end when idle."""
        match wish:
            case Ask():
                return len(self.history.waiting()) < self.config.concurrent_asks
            case Measure():
                candidate = self.history.candidates[wish.candidate]
                return (
                    self.history.in_flight() < self.config.concurrent_evaluations
                    and wish.mode not in candidate.measuring | candidate.measured
                )
            case Finish():
                return self._is_idle()
            case _:
                return True

    def _is_idle(self) -> bool:
        return not self.history.waiting() and not self.history.in_flight()


def _beats(latency_ns: float, history: History) -> bool:
    best = history.best.latency_ns if history.best else None
    return best is None or latency_ns < best


def _finish(reason: str, *, by_budget: bool) -> Move:
    return Move(fact=facts.Finished(reason=reason, by_budget=by_budget))
