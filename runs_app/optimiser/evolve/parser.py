"""Turns what a language model answered into events: candidates, votes, or why there are none."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from gpu_runner.data.codec import DataError
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.answers import (
    Parsed,
    Unusable,
    about,
    is_consent,
    read_kernel,
    read_text,
    read_vote,
)
from runs_app.optimiser.evolve.commands import Edit, Role
from runs_app.optimiser.evolve.config import Problem, RunConfig
from runs_app.optimiser.evolve.cpp_text import normalised, without_comments
from runs_app.optimiser.evolve.edit import EditError, apply_edits, has_edits
from runs_app.optimiser.evolve.events import Answer, Transition
from runs_app.optimiser.evolve.history import History, Question

# Every technique that can be named, the rarer and more telling ones first.
_PATTERNS: dict[str, str] = {
    "tensor cores": r"\bnvcuda::wmma\b|\bwmma::|\bmma_sync\b|\bwgmma\b|\bmma\.sync\b|\bldmatrix\b",
    "async copy": r"\bcp\.async\b|\b__pipeline_memcpy_async\b|\bmemcpy_async\b|\bcp_async\w*\b"
    r"|\bcuda::pipeline\b|\bcuda::barrier\b",
    "clusters": r"\b__cluster_dims__\b|\bthis_cluster\b|\bmap_shared_rank\b",
    "shared memory": r"\b__shared__\b",
    "warp shuffle": r"\b__shfl_\w+\b|\b__reduce_\w+_sync\b|\b\w+\.shfl(?:_\w+)?\(",
    "cooperative groups": r"\bcooperative_groups\b|\bthis_thread_block\b|\bthis_grid\b",
    "vector loads": r"\breinterpret_cast<\s*(?:const\s+)?(?:float|double|int|uint|half|__half|"
    r"__nv_bfloat16|longlong|uchar|short)\w*[248]\s*(?:const\s*)?[*&]|\b(?:float|int|uint)[24]\s*\*"
    r"|\bld\.global\.v[248]\b",
    "read-only cache": r"\b__ldg\b|\b__ldcs\b|\b__ldcg\b|\bld\.global\.nc\b",
    "constant memory": r"\b__constant__\b",
    "launch bounds": r"\b__launch_bounds__\b",
    "grid stride": r"\+=\s*(?:\(\w+\)\s*)?(?:gridDim\.x\s*\*\s*blockDim\.x"
    r"|blockDim\.x\s*\*\s*gridDim\.x|stride\b)",
    "atomics": r"\batomic(?:Add|Max|Min|CAS|Exch)\w*\b|\bstd::atomic\b|\bomp\s+atomic\b",
    "fast maths": r"\b__expf\b|\b__fdividef\b|\b__frcp_\w+\b|\b__fsqrt_\w+\b|\brsqrtf?\b|\b__logf\b"
    r"|\bex2\.approx\b|\b__builtin_bit_cast\b",
    "unrolling": r"#\s*pragma\s+(?:GCC\s+)?unroll\b|\bUNROLL\w*\b",
    "blocking": r"\b(?:TILE|BLOCK|BLK|MC|NC|KC|MR|NR|BM|BN|BK|TM|TN|tile|block_size)\w*\s*=\s*\w+"
    r"|#\s*define\s+(?:TILE|BLOCK|BM|BN|BK|TM|TN)\w*",
    "openmp": r"#\s*pragma\s+omp\s+parallel\b",
    "simd": r"\bomp\s+(?:\w+\s+)*simd\b|\b_mm(?:256|512)?_\w+\b|\b__m(?:128|256|512)[di]?\b"
    r"|\bvector_size\b|\bstd::experimental::simd\b",
    "prefetch": r"\b__builtin_prefetch\b|\bprefetch\.global\b|\b_mm_prefetch\b",
    "streaming stores": r"\b_mm\w*_stream_\w+\b|\b__stcs\b|\b__stwt\b",
    "restrict": r"\b__restrict(?:__)?\b",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}


def digest_of(source: str) -> str:
    """SHA-256 of a source without comments and layout, as 64 hex digits.

    Equal for kernels that differ in comments, indentation and line breaks alone: they compile to
    the same program, so the second is not measured again. Names, literals and knobs count.
    """
    return hashlib.sha256(normalised(source).encode()).hexdigest()


class AnswerParser:
    """Reads the answers of one run."""

    def __init__(self, problem: Problem, config: RunConfig, history: History) -> None:
        self._problem, self._config, self._history = problem, config, history

    def answer(self, answer: Answer) -> list[Transition]:
        """Events of an answer, in order.

        What a call that broke has left counts if it is a whole kernel or a vote.
        """
        question = self._history.questions[answer.event.ask]
        if isinstance(answer.event, events.Failed):
            _, transitions = self._read(question, answer.text, cut=True)
            return [Transition(event=answer.event), *transitions]
        cut = answer.finish_reason in ("length", "cut")
        problem, transitions = self._read(question, answer.text, cut=cut)
        if problem and answer.finish_reason == "length":
            problem = f"{problem}: it reached its token limit"
        if problem and answer.finish_reason == "content_filter":
            problem = "the endpoint's content filter stopped the answer"
        return [Transition(event=replace(answer.event, problem=problem)), *transitions]

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
            return "the vote isn't about any candidate", []
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
                return Unusable(f"the edit doesn't apply to kernel #{question.parents[0]}: {error}")
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


def techniques_in(source: str) -> tuple[str, ...]:
    """Names of the techniques in a source, in that order; what comments say is no sign.

    A pattern shows that a technique is written there, not that it runs or helps.
    """
    code = without_comments(source)
    return tuple(name for name, pattern in _COMPILED.items() if pattern.search(code))
