"""Turns what a language model answered into events: candidates, votes, or why there are none."""

from __future__ import annotations

import hashlib

from gpu_runner.data.codec import DataError
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Verdict
from runs_app.evolve import events
from runs_app.evolve.answers import (
    Parsed,
    Unusable,
    about,
    is_consent,
    read_kernel,
    read_text,
    read_vote,
)
from runs_app.evolve.commands import Edit, Role
from runs_app.evolve.config import Problem, RunConfig
from runs_app.evolve.cpp_text import normalised
from runs_app.evolve.edit import EditError, apply_edits, has_edits
from runs_app.evolve.history import AskState, History, Question
from runs_app.evolve.outcomes import Answer, CallFailure, Transition
from runs_app.evolve.techniques import techniques_in


def digest_of(source: str) -> str:
    """SHA-256 of a source without comments and layout, as 64 hex digits.

    Equal for kernels that differ in comments, indentation and line breaks alone: they compile to
    the same program, so the second is not measured again. Names, literals and knobs count.
    """
    return hashlib.sha256(normalised(source).encode()).hexdigest()


class AnswerParser:
    """Reads the answers of one run."""

    def __init__(self, problem: Problem, config: RunConfig, history: History) -> None:
        """The history is read, never changed."""
        self._problem, self._config, self._history = problem, config, history

    def answer(self, answer: Answer) -> list[Transition]:
        """Events of an answer, in order; none if that ask is settled already."""
        question = self._history.questions[answer.ask]
        if question.state is not AskState.WAITING:
            return []
        cut = answer.finish_reason in ("length", "cut")
        problem, transitions = self._read(question, answer.text, cut=cut)
        if problem and answer.finish_reason == "length":
            problem = f"{problem}: it reached the most tokens that it may have"
        if problem and answer.finish_reason == "content_filter":
            problem = "the endpoint's content filter stopped the answer"
        answered = events.Answered(
            ask=answer.ask,
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            cost_usd=answer.cost_usd,
            latency_s=answer.latency_s,
            problem=problem,
        )
        return [Transition(event=answered), *transitions]

    def failure(self, failure: CallFailure) -> list[Transition]:
        """Events of a call that broke: what it left counts if it is a whole kernel or a vote."""
        question = self._history.questions[failure.ask]
        if question.state is not AskState.WAITING:
            return []
        failed = events.Failed(
            ask=failure.ask,
            reason=failure.reason,
            tokens_in=failure.tokens_in,
            tokens_out=failure.tokens_out,
            cost_usd=failure.cost_usd,
        )
        _, transitions = self._read(question, failure.text, cut=True)
        return [Transition(event=failed), *transitions]

    def _read(self, question: Question, text: str, *, cut: bool) -> tuple[str, list[Transition]]:
        """Why nothing could be read, and the events that could."""
        if question.role in (Role.VERIFY, Role.REFLECT):
            return self._vote(question, text)
        if not question.role.writes_code:
            prose = read_text(text)
            return (prose.reason, []) if isinstance(prose, Unusable) else ("", [])
        if question.role is Role.COMPILE and is_consent(text):
            return "", []
        kernel = self._kernel(question, text, cut=cut)
        if isinstance(kernel, Unusable):
            return kernel.reason, []
        return "", self._draft(question, kernel)

    def _vote(self, question: Question, text: str) -> tuple[str, list[Transition]]:
        vote = read_vote(text)
        if isinstance(vote, Unusable):
            return vote.reason, []
        if question.about is None:
            return "the vote is about no candidate", []
        voted = events.Voted(
            candidate=question.about, verifier=question.verifier, passes=vote, ask=question.number
        )
        return "", [Transition(event=voted)]

    def _kernel(self, question: Question, text: str, *, cut: bool) -> Parsed | Unusable:
        """The kernel of an answer; edits are made to the first parent, a whole file is taken."""
        if question.edit is Edit.DIFF and question.parents and has_edits(text):
            parent = self._history.details.source(question.parents[0])
            try:
                code = apply_edits(parent, text)
                Solution(source=code, language=self._problem.language)
            except EditError as error:
                return Unusable(f"the edit does not fit kernel #{question.parents[0]}: {error}")
            except DataError as error:
                return Unusable(f"the edited code {error.reason}")
            return Parsed(code, *about(text))
        return read_kernel(text, self._problem, cut=cut)

    def _draft(self, question: Question, kernel: Parsed) -> list[Transition]:
        number = len(self._history.candidates) + 1
        digest = digest_of(kernel.code)
        drafted = events.Drafted(
            number=number,
            digest=digest,
            edit=question.edit,
            place=question.place,
            ask=question.number,
            model=question.model,
            parents=question.parents,
            title=kernel.title,
            techniques=techniques_in(kernel.code),
        )
        transitions = [Transition(event=drafted, source=kernel.code)]
        known = self._history.known(digest)
        if known is not None and known.verdict != Verdict.SYSTEM_ERROR:  # that one was lost
            reason = f"the same as #{known.number}"
            transitions.append(Transition(event=events.Dropped(candidate=number, reason=reason)))
        return transitions
