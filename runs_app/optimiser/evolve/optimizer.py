"""The optimiser: ask it what to do next, tell it what came back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.scores import score
from gpu_runner.data.verdict import Mode
from runs_app.core.profile.bottleneck import classify
from runs_app.core.profile.diagnosis import diagnose
from runs_app.optimiser.evolve import budget, events
from runs_app.optimiser.evolve.commands import Ask, Command, Draft, Drop, Finish, Measure
from runs_app.optimiser.evolve.config import Briefing, Budget, Problem, RunConfig
from runs_app.optimiser.evolve.confirm import confirmation
from runs_app.optimiser.evolve.evaluations import LAST_MODES
from runs_app.optimiser.evolve.events import Answer, Evaluated, Event, Outcome, Transition
from runs_app.optimiser.evolve.history import AskState, History
from runs_app.optimiser.evolve.parser import AnswerParser, digest_of
from runs_app.optimiser.evolve.strategies import STRATEGIES, make_strategy


class Optimizer:
    """One run's strategy over its history. Pure: same seed and events, same transitions."""

    def __init__(self, problem: Problem, config: RunConfig, history: History) -> None:
        """Go on from `history`; raises `DataError` for parameters that the strategy refuses."""
        self.problem, self.config, self.history = problem, config, history
        self._heeded: tuple[Mapping[str, object], Briefing | None] | None = None
        self._heed_news()
        self.parser = AnswerParser(problem, config, history)

    def tell(self, outcome: Outcome) -> list[Transition]:
        """Learn of an outcome. One that was told before changes nothing."""
        if not self._is_awaited(outcome):
            return []
        match outcome:
            case Answer():
                return self._record(self.parser.answer(outcome))
            case Evaluated():
                return self._record([Transition(event=self._measured(outcome))])

    def ask(self) -> list[Transition]:
        """What to do now. Call it until it returns nothing: one opens the way to another.

        What has no room now is commanded again later. The run ends when nothing is under way and
        either the budget forbids each command, or there is none.
        """
        if self.history.finished is not None:
            return []
        if self.history.searched is not None:
            return self._record(self._last_steps(self.history.searched))
        self._heed_news()
        transitions: list[Transition] = []
        refusals: list[str] = []
        for command in self.strategy.ask(self.history):
            if not self._has_room(command):
                continue
            refusal = self._refusal(command)
            if refusal:
                refusals.append(refusal)
            else:
                transitions += self._record(self._transitions(command))
                if isinstance(command, Finish):
                    break
        if not transitions and self._is_idle():
            reason = refusals[0] if refusals else "the strategy has nothing more to ask"
            transitions = self._record([self.end(reason, by_budget=bool(refusals))])
        return transitions

    def _heed_news(self) -> None:
        """Go on with a strategy that has more to do by an extension, or knows more of the task."""
        news = self.history.parameters, self.history.briefing
        if news != self._heeded:
            self._heeded = news
            self.problem = self.problem.with_briefing(self.history.briefing)
            self.strategy = make_strategy(self.problem, extended(self.config, news[0]))

    def end(self, reason: str, *, by_budget: bool) -> Transition:
        """The end of the search, and so of the run if its best need not be ranked."""
        if self.config.ranks_best:
            return Transition(event=events.Searched(reason=reason, by_budget=by_budget))
        return Transition(event=events.Finished(reason=reason, by_budget=by_budget))

    def _last_steps(self, searched: events.Searched) -> Iterator[Transition]:
        """After the search: its best are ranked, one is chosen, and the run ends."""
        if self.history.is_searching():
            return  # the end of the search has taken these back
        found = confirmation(self.history)
        for command in found.measure:
            if self._has_room(command):
                yield from self._transitions(command)
        if found.is_over:
            if found.chosen is not None:
                yield Transition(event=found.chosen)
            yield Transition(
                event=events.Finished(reason=searched.reason, by_budget=searched.by_budget)
            )

    def _is_awaited(self, outcome: Outcome) -> bool:
        if isinstance(outcome, Evaluated):
            return outcome.mode in self.history.candidates[outcome.candidate].measuring
        return self.history.questions[outcome.event.ask].state is AskState.WAITING

    def _record(self, transitions: Iterable[Transition]) -> list[Transition]:
        made = []
        for transition in transitions:
            self.history.apply(transition.event)
            made.append(transition)
        return made

    def _transitions(self, command: Command) -> list[Transition]:
        match command:
            case Ask():
                return [self._asked(command)]
            case Draft():
                return self._drafted(command)
            case Measure():
                return [Transition(event=events.Measuring(**vars(command)), command=command)]
            case Drop():
                return [Transition(event=events.Dropped(**vars(command)))]
            case Finish():
                return [self.end(command.reason, by_budget=False)]

    def _asked(self, command: Ask) -> Transition:
        allowance = self.allowance(command)
        same = ("role", "place", "model", "temperature", "parents", "about", "verifier", "edit")
        event = events.Asked(
            number=len(self.history.questions) + 1,
            prompt=command.prompt.name,
            prompt_version=command.prompt.version,
            max_tokens=allowance.max_tokens,
            worst_usd=allowance.worst_usd,
            worst_tokens=allowance.worst_tokens,
            **{name: getattr(command, name) for name in same},
        )
        return Transition(event=event, command=command)

    def _drafted(self, command: Draft) -> list[Transition]:
        number, told = len(self.history.candidates) + 1, dict(vars(command))
        source = told.pop("source")
        event = events.Drafted(number=number, digest=digest_of(source), **told)
        return [Transition(event=event, command=command, source=source)]

    def _measured(self, outcome: Evaluated) -> Event:
        result = outcome.result
        if result is None:
            return events.Measured(
                candidate=outcome.candidate,
                mode=outcome.mode,
                verdict="SYSTEM_ERROR",
                reason=outcome.reason,
            )
        candidate = self.history.candidates[outcome.candidate]
        spreads = [w.measurement.relative_half_width for w in result.workloads if w.measurement]
        measured = events.Measured(
            candidate=outcome.candidate,
            mode=outcome.mode,
            verdict=result.verdict.value,
            reason=result.reason,
            latency_ns=result.latency_ns,
            spread=max(spreads, default=None),
            speedup=result.speedups.get("best"),
            score=_score_of(result) if outcome.mode in LAST_MODES else None,
            floor_fraction=result.floor_fraction,
            bottleneck=self._class_of(result),
        )
        first = not candidate.is_told or outcome.mode is Mode.QUICK
        best = first and result.latency_ns is not None and _beats(result.latency_ns, self.history)
        return replace(measured, best=best)

    def _class_of(self, result: EvaluationResult) -> str:
        """CUDAMaster's class for its own planner, which reads its metrics; else the diagnosis."""
        info = STRATEGIES.get(self.config.strategy)
        if info is not None and info.papers_classes:
            return classify(result, self.problem.threshold_pct)
        return diagnose(result)

    def _refusal(self, command: Command) -> str:
        """Why the budget forbids a command; empty if it does not.

        Nothing is drafted that could not be measured.
        """
        if not isinstance(command, Ask | Draft | Measure):
            return ""
        so_far = budget.spent(self.history)
        if refusal := budget.evaluations_refusal(self._budget, so_far):
            return refusal
        return self.allowance(command).refusal if isinstance(command, Ask) else ""

    def allowance(self, command: Ask) -> budget.Allowance:
        """What the budget allows a question now."""
        return budget.allow(
            self._budget,
            budget.spent(self.history),
            self.config.model(command.model),
            budget.tokens_bound(command.prompt.messages),
            min(command.max_tokens or self.config.max_tokens, self.config.max_tokens),
        )

    @property
    def _budget(self) -> Budget:
        return self.history.budget or self.config.budget

    def _has_room(self, command: Command) -> bool:
        """Whether it can be done now: the end when idle, and a measurement once for each mode.

        Ranking may be repeated.
        """
        match command:
            case Ask():
                return len(self.history.waiting()) < self.config.concurrent_asks
            case Measure():
                candidate = self.history.candidates[command.candidate]
                once = candidate.measured - {Mode.RANKED}
                return (
                    self.history.in_flight < self.config.concurrent_evaluations
                    and command.mode not in candidate.measuring | once
                )
            case Finish():
                return self._is_idle()
            case _:
                return True

    def _is_idle(self) -> bool:
        return not self.history.waiting() and not self.history.in_flight


def extended(config: RunConfig, parameters: Mapping[str, object]) -> RunConfig:
    """The run's settings with what extensions have changed of its strategy's parameters."""
    return replace(config, parameters={**config.parameters, **parameters})


def _score_of(result: EvaluationResult) -> float | None:
    """Against the eager baseline: another may be known for one candidate and awaited for another.

    Without it, against the best.
    """
    names = ("eager", "best")
    found = (score(result.speedups.get(n), result.unlisted_speedups.get(n)) for n in names)
    return next(filter(None, found), None)


def _beats(latency_ns: float, history: History) -> bool:
    best = history.best.latency_ns if history.best else None
    return best is None or latency_ns < best
