"""The verification before hardware: language models vote on candidates (robust-kbench)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from gpu_runner.data.codec import DataError
from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve import prompts
from runs_app.optimiser.evolve.commands import Prompt, Role
from runs_app.optimiser.evolve.config import Problem, RunConfig
from runs_app.optimiser.evolve.cpp_text import nearest
from runs_app.optimiser.evolve.history import Candidate, CandidateState
from runs_app.optimiser.evolve.judging import VERIFIERS
from runs_app.optimiser.evolve.steps import Inquiry, Steps, fastest, gather

TUNED = 0
"""Version of a verifier's prompt whose instructions are not the shipped ones."""

_COMPARED = 20
"""Correct kernels, the fastest first, that a new one is compared with where scores are equal."""

Draft = Callable[[], Candidate | None]
"""A step that gives a candidate, or None where no kernel came."""


def check_verifiers(config: RunConfig) -> None:
    """Refuse unknown verifiers, and numbers without a meaning; raises `DataError`."""
    verifiers = config.verifiers
    for name in (*verifiers.names, *verifiers.prompts):
        if name not in VERIFIERS:
            raise DataError("verifiers", f"{name!r} is not one of {', '.join(VERIFIERS)}")
    if len(set(verifiers.names)) < len(verifiers.names):
        raise DataError("verifiers", "a verifier is listed twice")
    if not 0 <= verifiers.threshold <= 1:
        raise DataError("verifiers.threshold", "must be from 0 to 1")
    if verifiers.survivors < 1:
        raise DataError("verifiers.survivors", "must be 1 or more")
    if verifiers.names and verifiers.model:
        config.model(verifiers.model)


def judged(steps: Steps, drafts: Iterable[Draft], mode: Mode = Mode.QUICK) -> list[Candidate]:
    """What came of drafts that stand side by side: verified, measured or dropped.

    Without verifiers each candidate is measured as soon as it exists. Hard: as soon as its votes
    are in, and only above the threshold. Soft: the best `survivors` by score, once all have votes.
    Where no more stand side by side than survive, a vote could change nothing, and none is asked.
    """
    waiting, verifiers = list(drafts), steps.config.verifiers
    chooses = bool(verifiers.names) and verifiers.soft and len(waiting) > verifiers.survivors
    one = voted if chooses else partial(_measured, mode=mode)
    found = gather(partial(one, steps, draft) for draft in waiting)
    candidates = [candidate for candidate in found if candidate is not None]
    if chooses:
        return gather(
            partial(steps.measured, survivor, mode) for survivor in _survivors(steps, candidates)
        )
    return candidates


def instructions(verifier: str, problem: Problem | None = None) -> str:
    """The shipped instructions of a verifier, for a problem's language, or for all."""
    return prompts.chosen(prompts.part(f"verify_{verifier}"), problem)


def verify_prompt(
    problem: Problem, verifier: str, candidate: str, reference: str, tuned: str
) -> Prompt:
    """What a verifier is asked.

    reference: a kernel that works, and what is known of it. tuned: replaces the instructions.
    """
    prompt = prompts.render(
        "verify",
        problem,
        instructions=tuned or instructions(verifier, problem),
        known_kernel=reference,
        candidate=candidate,
    )
    return _named(prompt, verifier, tuned)


def reflect_prompt(
    problem: Problem, verifier: str, candidate: str, first: str, tuned: str
) -> Prompt:
    """What a verifier is asked to think over: its first answer."""
    prompt = prompts.render(
        "reflect",
        problem,
        instructions=tuned or instructions(verifier, problem),
        candidate=candidate,
        first=first,
    )
    return _named(prompt, verifier, tuned)


def _named(prompt: Prompt, verifier: str, tuned: str) -> Prompt:
    """The prompt under the name of its verifier, with the version of the instructions."""
    version = TUNED if tuned else prompts.part_version(f"verify_{verifier}")
    return replace(prompt, name=f"{prompt.name}_{verifier}", version=version)


def _measured(steps: Steps, draft: Draft, mode: Mode) -> Candidate | None:
    hard, threshold = not steps.config.verifiers.soft, steps.config.verifiers.threshold
    candidate = voted(steps, draft) if hard else draft()
    if candidate is None:
        return None
    score, waits = candidate.score, candidate.state is CandidateState.DRAFTED
    if hard and waits and score is not None and score < threshold:
        steps.dropped(candidate, f"the verifiers' score {score:.2f} is below {threshold:g}")
    return steps.measured(candidate, mode)


def voted(steps: Steps, draft: Draft) -> Candidate | None:
    """The candidate with all its votes; one whose votes have failed goes on without them."""
    candidate = draft()
    if candidate is not None and candidate.state is CandidateState.DRAFTED:
        gather(partial(_vote, steps, candidate, name) for name in steps.config.verifiers.names)
    return candidate


def _vote(steps: Steps, candidate: Candidate, verifier: str) -> None:
    """VERIFY, and one REFLECT about its answer."""
    problem, settings = steps.problem, steps.config.verifiers
    tuned = settings.prompts.get(verifier, "")
    inquiry = Inquiry(
        role=Role.VERIFY,
        place=candidate.place,
        prompt=lambda: verify_prompt(
            problem, verifier, steps.source(candidate), _known_kernel(steps, candidate), tuned
        ),
        about=candidate.number,
        verifier=verifier,
        model=settings.model or candidate.model,
        calm=True,
    )
    first = steps.text(inquiry)
    if first and settings.reflect:
        steps.answered(
            replace(
                inquiry,
                role=Role.REFLECT,
                prompt=lambda: reflect_prompt(
                    problem, verifier, steps.source(candidate), first, tuned
                ),
            )
        )


def _survivors(steps: Steps, candidates: list[Candidate]) -> list[Candidate]:
    """The best by score: soft verification. Those without any vote count as undecided, 0.5.

    Of equal scores the kernel goes first that is least like what is measured or was taken before.
    """
    alive = [c for c in candidates if c.state is not CandidateState.DROPPED]
    ranked = _by_score_and_novelty(steps, alive)
    most = steps.config.verifiers.survivors
    because = f"is not among the best {most} of its generation"
    gather(
        partial(steps.dropped, c, f"the verifiers' score {score_of(c):.2f} {because}")
        for c in ranked[most:]
    )
    dropped = [c for c in candidates if c.state is CandidateState.DROPPED]
    return sorted([*ranked[:most], *dropped], key=lambda c: c.number)


def _by_score_and_novelty(steps: Steps, candidates: list[Candidate]) -> list[Candidate]:
    """The best scores first; within a score the newest code first, in a fixed order."""
    scores = Counter(score_of(candidate) for candidate in candidates)
    if max(scores.values(), default=0) < 2:
        return sorted(candidates, key=lambda c: -score_of(c))
    own = {c.number for c in candidates}
    known = [c.number for c in reversed(steps.history.correct()) if c.number not in own]
    taken = [(number, steps.history.details.source(number)) for number in known[:_COMPARED]]
    ranked: list[Candidate] = []
    waiting = sorted(candidates, key=lambda c: c.number)
    while waiting:
        best = max(score_of(c) for c in waiting)
        equals = [c for c in waiting if score_of(c) == best]
        chosen = min(equals, key=lambda c: (_likeness(steps.source(c), taken), c.number))
        waiting.remove(chosen)
        ranked.append(chosen)
        taken.append((chosen.number, steps.source(chosen)))
    return ranked


def _likeness(source: str, others: list[tuple[int, str]]) -> float:
    found = nearest(source, others)
    return found[1] if found is not None else 0.0


def score_of(candidate: Candidate) -> float:
    """Mean of the votes; a candidate without any counts as undecided."""
    return 0.5 if candidate.score is None else candidate.score


def _known_kernel(steps: Steps, candidate: Candidate) -> str:
    """A kernel that works, with its description and time: a parent, else the fastest."""
    parents = [steps.history.candidates[number] for number in candidate.parents]
    known = fastest(parents) or steps.history.best
    if known is None:
        return "No kernel for this task is known to work yet."
    speedup = f", {known.speedup:.2f}× the best baseline" if known.speedup else ""
    time = f"{(known.latency_ns or 0) / 1e3:.2f} us"
    return f"{known.title or 'A correct kernel'} ({time}{speedup}):\n\n{steps.source(known)}"
