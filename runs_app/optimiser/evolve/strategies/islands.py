"""Ours: islands of elites, edits of three kinds, and money where there is room to gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from gpu_runner.data.codec import DataError
from runs_app.optimiser.evolve.archive import (
    Archive,
    Arm,
    choose,
    draw_parent,
    draw_partner,
    gain,
    headroom,
    improves,
    must_beat_ns,
    populate,
    times_mended,
)
from runs_app.optimiser.evolve.commands import (
    Ask,
    Command,
    Drop,
    Edit,
    Measure,
    Place,
    Prompt,
    Role,
)
from runs_app.optimiser.evolve.cpp_text import nearest
from runs_app.optimiser.evolve.evaluations import is_refusal
from runs_app.optimiser.evolve.history import AskState, Candidate, CandidateState, History, draw
from runs_app.optimiser.evolve.prompts import MAX_NOTES_TOKENS, fence_of, render, sample_text
from runs_app.optimiser.evolve.steps import Inquiry, Pending, Steps, named
from runs_app.optimiser.evolve.strategies.contract import (
    MAX_AT_ONCE,
    MAX_STEPS,
    MAX_TRIES,
    Planned,
    StrategyInfo,
    between,
)
from runs_app.optimiser.evolve.strategies.translate import first_kernel
from runs_app.optimiser.evolve.verifiers import score_of, voted

_NO_NOTES = "None yet."
_LOOKED_AT = 200  # newest kernels among which one is sought that failed: older ones were seen


@dataclass(frozen=True, kw_only=True)
class IslandsParameters:
    """Shares and intervals; edits, novelty and bandit as in ShinkaEvolve, its numbers included."""

    islands: int = 4
    proposals: int = 100
    migration_interval: int = 12
    diff: float = 0.6
    rewrite: float = 0.3
    crossover: float = 0.1
    similarity: float = 0.995
    floor_stop: float = 0.05
    mend: int = 1
    early_stop: bool = True
    notes: int = 10
    tries: int = 10

    def __post_init__(self) -> None:
        """Refuse numbers without a meaning; raises `DataError`."""
        between(1, MAX_AT_ONCE, islands=self.islands)
        between(1, MAX_STEPS, proposals=self.proposals, migration_interval=self.migration_interval)
        between(1, MAX_TRIES, tries=self.tries)
        between(0, MAX_TRIES, mend=self.mend)
        between(0, MAX_STEPS, notes=self.notes)
        between(0, 1000, diff=self.diff, rewrite=self.rewrite, crossover=self.crossover)
        if self.diff + self.rewrite + self.crossover == 0:
            raise DataError("parameters.diff", "at least one kind of edit needs a weight above 0")
        for name in ("similarity", "floor_stop"):
            if not 0 <= getattr(self, name) <= 1:
                raise DataError(f"parameters.{name}", "is a share; it must be from 0 to 1")


class Islands(Planned[IslandsParameters]):
    """Asks for proposals as long as models are idle, and measures whatever has come."""

    def _plan(self, steps: Steps) -> str:
        history, parameters = steps.history, self.parameters
        if first_kernel(steps, parameters.tries) is None:
            return f"no correct seed kernel after {parameters.tries} tries"
        best = history.best
        is_limit = not any(self.problem.may_beat(known.workload) for known in self.problem.known)
        near = best is not None and (best.floor_fraction or 0.0) >= 1 - parameters.floor_stop
        if best is not None and near and is_limit:
            return f"kernel #{best.number} is at {best.floor_fraction:.0%} of the physical limit"
        archives = populate(history, parameters.islands, parameters.migration_interval)
        commands = [*self._judged(steps, archives), *self._profiles(steps)]
        commands += self._mends(steps)
        asked = len(history.find(Role.PROPOSE))
        if asked < parameters.proposals:
            commands += self._notes(steps)
            commands += self._proposals(steps, archives, asked)
        elif not commands and not history.waiting() and not history.in_flight:
            return f"all {asked} proposals were made"
        raise Pending(commands)

    def _judged(self, steps: Steps, archives: list[Archive]) -> list[Command]:
        """Drop what is no news, let the verifiers vote, measure the rest."""
        commands: list[Command] = []
        ready: list[Candidate] = []
        for candidate in drafted(steps.history):
            if reason := self._known(steps, candidate, archives):
                commands.append(Drop(candidate=candidate.number, reason=reason))
                continue
            try:
                voted(steps, partial(_given, candidate))
                ready.append(candidate)
            except Pending as pending:
                commands += pending.commands
        return commands + self._admitted(steps, ready)

    def _admitted(self, steps: Steps, ready: list[Candidate]) -> list[Command]:
        """What the votes let through. Hard: what reaches the threshold, or got no vote at all.

        Soft, where nothing waits for a generation: candidates
        queue for the device by score, and of a queue longer than `survivors` the worst are dropped.
        """
        verifiers = self.config.verifiers
        limits = self._limits(steps.history) if ready else {}
        if not verifiers.names:
            return [Measure(candidate=c.number, must_beat_ns=limits) for c in ready]
        ranked = sorted(ready, key=lambda c: (-score_of(c), c.number))
        if verifiers.soft:
            passed = ranked[: verifiers.survivors]
            reason = f"{verifiers.survivors} others in the device's queue have better scores"
        else:
            passed = [c for c in ranked if c.score is None or c.score >= verifiers.threshold]
            reason = f"the verifiers' score is below {verifiers.threshold:g}"
        failed = [candidate for candidate in ranked if candidate not in passed]
        return [
            *(Measure(candidate=c.number, must_beat_ns=limits) for c in passed),
            *(Drop(candidate=candidate.number, reason=reason) for candidate in failed),
        ]

    def _limits(self, history: History) -> Mapping[str, float]:
        """Above which time of a workload a kernel cannot become the best."""
        if not self.parameters.early_stop or history.best is None:
            return {}
        return must_beat_ns(self.problem, history.details.feedback(history.best.number))

    def _known(self, steps: Steps, candidate: Candidate, archives: list[Archive]) -> str:
        """Why a candidate is no news; empty if it is, or a verifier has begun to read it."""
        history = steps.history
        if history.find(Role.VERIFY, about=candidate.number):
            return ""
        elites = {elite.number for elite in archives[candidate.place.island]}
        parents = {n for n in candidate.parents if history.candidates[n].is_correct}
        others = sorted(elites | parents)  # a kernel that was mended is like the one that failed
        sources = ((number, history.details.source(number)) for number in others)
        found = nearest(steps.source(candidate), sources)
        if found is None or found[1] < self.parameters.similarity:
            return ""
        return f"nothing new: {found[1]:.1%} the same as #{found[0]}"

    def _profiles(self, steps: Steps) -> list[Command]:
        """Profiles of the elites-to-be: what is faster than its first parent, and the seeds."""
        commands: list[Command] = []
        for candidate in steps.history.settled:
            try:
                if improves(steps.history, candidate):
                    steps.profiled(candidate)
            except Pending as pending:
                commands += pending.commands
        return commands

    def _mends(self, steps: Steps) -> list[Command]:
        """Asks to mend what has failed: an inner loop of each proposal, before it is given up."""
        history = steps.history
        free = self.config.concurrent_asks - len(history.waiting())
        if not self.parameters.mend or free <= 0:
            return []
        failed = [c for c in history.settled[-_LOOKED_AT:] if self._is_to_be_mended(history, c)]
        return [self._mend(steps, candidate) for candidate in failed[:free]]

    def _is_to_be_mended(self, history: History, candidate: Candidate) -> bool:
        if candidate.place.generation == 0 or not is_refusal(candidate.verdict):
            return False
        if history.find(Role.DEBUG, about=candidate.number):
            return False
        return times_mended(history, candidate) < self.parameters.mend

    def _mend(self, steps: Steps, failed: Candidate) -> Ask:
        dice = draw(self.config.seed, "mend", failed.number)
        question = steps.history.questions.get(failed.ask or 0)
        model = question.model if question else dice.choice(self.config.writers).name
        return Ask(
            role=Role.DEBUG,
            prompt=render(
                "debug",
                self.problem,
                code=steps.source(failed),
                strategy=failed.title or "It was written to be faster than its parents.",
                error=steps.error(failed),
            ),
            model=model,
            temperature=min(self.config.temperatures),
            place=failed.place,
            parents=(failed.number,),
            about=failed.number,
        )

    def _notes(self, steps: Steps) -> list[Command]:
        """A look back after every so many measured kernels; nobody waits for it."""
        every, history = self.parameters.notes, steps.history
        due = len(history.settled) // every if every else 0
        waits = any(q.state is AskState.WAITING for q in history.find(Role.RECOMMEND))
        if not due or waits:
            return []
        place, prompt = Place(generation=due), partial(self._notes_prompt, steps)
        inquiry = Inquiry(
            role=Role.RECOMMEND, place=place, prompt=prompt, calm=True, max_tokens=MAX_NOTES_TOKENS
        )
        try:
            steps.answered(inquiry)
        except Pending as pending:
            return pending.commands
        return []

    def _notes_prompt(self, steps: Steps) -> Prompt:
        newest = steps.history.settled[-2 * self.parameters.notes :]
        return render(
            "islands_notes",
            self.problem,
            notes=notes_of(steps.history),
            results="\n".join(f"- {_result(steps, c)}" for c in newest),
        )

    def _proposals(self, steps: Steps, archives: list[Archive], asked: int) -> list[Command]:
        """Asks for idle models: what is asked before a result is there learns nothing from it."""
        history, config = steps.history, self.config
        unmeasured = len(drafted(history)) + history.in_flight
        under_way = len(history.waiting()) + unmeasured
        free = min(
            config.concurrent_asks - len(history.waiting()),
            config.concurrent_asks + config.concurrent_evaluations - under_way,
        )
        if free <= 0:
            return []
        last = min(asked + free, self.parameters.proposals)
        arms = self._arms(history)
        return [
            self._proposal(
                steps, archives, arms, n, sample_text("proposal", n - asked, last - asked)
            )
            for n in range(asked + 1, last + 1)
        ]

    def _proposal(
        self, steps: Steps, archives: list[Archive], arms: list[Arm], number: int, sample: str
    ) -> Ask:
        """Island, parent, kind of edit, model, temperature: drawn in this order."""
        dice = draw(self.config.seed, "islands", number)
        rooms = [headroom(archive.best) for archive in archives]
        island = dice.choices(range(len(archives)), rooms)[0]
        parent = draw_parent(list(archives[island]), dice)
        parameters = self.parameters
        weights = (parameters.diff, parameters.rewrite, parameters.crossover)
        edit = dice.choices((Edit.DIFF, Edit.REWRITE, Edit.CROSSOVER), weights)[0]
        partner = draw_partner(parent, island, archives, dice)
        if edit is Edit.CROSSOVER and partner is None:
            edit = Edit.DIFF
        parents = [parent, partner] if edit is Edit.CROSSOVER and partner else [parent]
        return Ask(
            role=Role.PROPOSE,
            prompt=self._prompt(steps, edit, parents, archives[island], sample),
            model=choose(arms, dice).name,
            temperature=dice.choice(self.config.temperatures),
            place=Place(generation=parent.place.generation + 1, slot=number, island=island),
            parents=tuple(candidate.number for candidate in parents),
            edit=edit,
        )

    def _prompt(
        self, steps: Steps, edit: Edit, parents: list[Candidate], archive: Archive, sample: str
    ) -> Prompt:
        others = [elite for elite in archive if elite not in parents]
        if len(parents) > 1:
            values = {"partner": kernel_text(steps, parents[1])}
        else:
            values = {"sample": sample}
        return render(
            f"islands_{edit}",
            self.problem,
            parent=kernel_text(steps, parents[0]),
            elites="\n".join(f"- {_summary(steps, elite)}" for elite in others) or "None yet.",
            notes=notes_of(steps.history),
            tried=steps.tried(besides=(c.number for c in (*parents, *others))),
            **values,
        )

    def _arms(self, history: History) -> list[Arm]:
        """What each model's proposals brought, of those that are decided."""
        arms = {model.name: Arm(model) for model in self.config.writers}
        for question in history.find(Role.PROPOSE):
            child = history.candidates.get(question.candidate or 0)
            if question.state is AskState.WAITING or (child is not None and _is_open(child)):
                continue
            parent = history.candidates[question.parents[0]]
            brought = gain(parent.latency_ns or 0.0, child.latency_ns if child else None)
            arms[question.model].add(brought, question.cost_usd or 0.0)
        return list(arms.values())


def drafted(history: History) -> list[Candidate]:
    """Candidates that wait for a decision."""
    return [c for c in history.candidates.values() if c.state is CandidateState.DRAFTED]


def kernel_text(steps: Steps, candidate: Candidate) -> str:
    """A kernel and what hardware said of it, for a prompt."""
    code = f"```{fence_of(steps.problem)}\n{steps.source(candidate).rstrip()}\n```"
    return f"## Kernel {named(candidate)}\n{code}\n\n{steps.report(candidate)}"


def notes_of(history: History) -> str:
    """The newest notes of the search: what it has learnt so far, in a language model's words."""
    for question in reversed(history.find(Role.RECOMMEND)):
        if question.state is AskState.ANSWERED and not question.problem:
            text = history.details.answer(question.number).strip()
            return text or _NO_NOTES
    return _NO_NOTES


def _result(steps: Steps, candidate: Candidate) -> str:
    """A kernel's outcome in a line, beside what it came from."""
    parents = [steps.history.candidates[number] for number in candidate.parents]
    came = "; ".join(steps.line(parent) for parent in parents) or "the beginning"
    return f"{_summary(steps, candidate)} (from {came})"


def _summary(steps: Steps, elite: Candidate) -> str:
    known = ", ".join(elite.techniques) or "no known technique"
    return f"{steps.line(elite)}; {known}"


def _given(candidate: Candidate) -> Candidate:
    return candidate


def _is_open(candidate: Candidate) -> bool:
    return candidate.state in (CandidateState.DRAFTED, CandidateState.MEASURING)


INFO = StrategyInfo(
    name="islands",
    title="Islands",
    summary="Several populations edit, rewrite and combine kernels, and exchange their best ones.",
    paper="",
    parameters=IslandsParameters,
    grows=("proposals",),
    help={
        "islands": "How many populations search side by side.",
        "proposals": "The maximum number of kernels to request.",
        "migration_interval": "Each island's best kernel is copied to the next island after this "
        "many measured kernels.",
        "diff": "Weight of edits that change parts of one kernel.",
        "rewrite": "Weight of complete rewrites of one kernel.",
        "crossover": "Weight of kernels that combine two others.",
        "similarity": "Kernels that share this much of their code with a parent, or with "
        "one of the best kernels of their island, aren't measured.",
        "mend": "How many times a failing kernel is repaired, given its error, before it is "
        "dropped.",
        "early_stop": "Whether to stop a kernel that can no longer beat the best.",
        "notes": "The search's notes are rewritten after this many measured kernels; 0 for never.",
        "floor_stop": "The run ends when its best kernel is this close to the physical limit.",
        "tries": "Attempts at the translation if there is no working kernel to start from.",
    },
    make=Islands,
)
