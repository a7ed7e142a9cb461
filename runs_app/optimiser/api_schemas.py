"""What the API takes and tells of optimization runs."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from ninja import Field, Schema
from pydantic import StrictBool, StrictFloat, StrictInt

from gpu_runner.data.verdict import Direction
from runs_app.core.api_body import Body, between, one_of
from runs_app.models import Run
from runs_app.optimiser.evolve.budget import MIN_OUTPUT_TOKENS
from runs_app.optimiser.evolve.config import MOST, MOST_ANSWER_TOKENS, ProfileMode
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.selectors.confirmation import ConfirmationState
from runs_app.optimiser.services.request import (
    HOTTEST,
    MOST_AT_ONCE,
    MOST_SURVIVORS,
    NAME_LENGTH,
    SEED_KERNELS,
    SEED_LIMIT,
)

MOST_LISTED = 200


class BudgetIn(Body):
    """Caps of a run. Null means no cap; 0 leaves nothing to spend. Set at least one cap.

    An extension changes only the caps in its body; null removes a cap.
    """

    usd: StrictFloat | None = Field(None, examples=[2.0], json_schema_extra=between(0, MOST["usd"]))
    tokens: StrictInt | None = Field(
        None, examples=[2_000_000], json_schema_extra=between(0, MOST["tokens"])
    )
    evaluations: StrictInt | None = Field(
        None, examples=[60], json_schema_extra=between(0, MOST["evaluations"])
    )
    wall_time_s: StrictInt | None = Field(
        None,
        examples=[3600],
        description="Running time in seconds, excluding pauses.",
        json_schema_extra=between(0, MOST["wall_time_s"]),
    )


class ExtendIn(BudgetIn):
    """Caps to change, and parameters of the strategy to raise."""

    parameters: dict[str, StrictInt] = Field(
        {},
        examples=[{"generations": 20}],
        description="New, larger values of the strategy's parameters: generations for evolve,"
        " depth for fsr, r for cudamaster, proposals for islands, evaluations and patience for"
        " autotune, tries for translate.",
    )


class AgainIn(Body):
    """Settings that differ from the original run's."""

    models: list[str] = Field([], description="Language models; if left out, the original run's.")
    seed: StrictInt | None = Field(
        None,
        description="Random seed; if left out, a new one is drawn.",
        json_schema_extra=between(0, SEED_LIMIT - 1),
    )
    budget: BudgetIn | None = None
    parameters: dict[str, object] = Field(
        {}, description="The strategy's parameters; if left out, the original run's."
    )
    name: str = Field("", json_schema_extra={"maxLength": NAME_LENGTH})
    private: StrictBool = False


class VerifiersIn(Body):
    """Language-model judges that vote on a candidate before it is measured."""

    names: list[str] = Field(
        [],
        examples=[["compile", "memory", "numerics"]],
        description="The verifiers to use; if empty, none.",
    )
    soft: StrictBool = Field(
        True, description="Measure only the best `survivors` of each generation."
    )
    threshold: StrictFloat = Field(
        0.5, description="If `soft` is false, drop candidates with a lower score."
    )
    survivors: StrictInt = Field(4, json_schema_extra=between(1, MOST_SURVIVORS))
    reflect: StrictBool = Field(True, description="Whether each verifier reconsiders its vote.")
    model: str = Field("", description="If empty, the language model that wrote the candidate.")


class RunIn(Body):
    """An optimization run to start."""

    task: str = Field(examples=["matrix_mul"])
    device: str = Field(
        "", examples=["cpu"], description="A device from /queue; if empty, the CPU."
    )
    strategy: str = Field(examples=["autotune"], json_schema_extra=one_of(*STRATEGIES))
    direction: str = Field(
        Direction.FORWARD.value,
        description="forward or backward",
        json_schema_extra=one_of(*Direction),
    )
    parameters: dict[str, object] = Field(
        {}, description="The strategy's parameters, named as in its paper."
    )
    models: list[str] = Field([], description="Names of language models; see /language-models/.")
    temperatures: list[StrictFloat] = Field(
        [0.5, 0.75, 1.0],
        json_schema_extra={"minItems": 1, "items": {"type": "number"} | between(0, HOTTEST)},
    )
    max_tokens: StrictInt = Field(
        8192,
        description="The most tokens that one answer may use.",
        json_schema_extra=between(MIN_OUTPUT_TOKENS, MOST_ANSWER_TOKENS),
    )
    budget: BudgetIn | None = Field(
        None, description="If left out, 60 evaluations, 1 hour, and 2 USD if all prices are known."
    )
    verifiers: VerifiersIn | None = Field(None, description="If left out, no verifiers.")
    profile: str = Field(
        "filtered",
        description="How much of a profile prompts show: none, filtered or full.",
        json_schema_extra=one_of(*ProfileMode),
    )
    concurrent_asks: StrictInt = Field(4, json_schema_extra=between(1, MOST_AT_ONCE))
    concurrent_evaluations: StrictInt = Field(4, json_schema_extra=between(1, MOST_AT_ONCE))
    seed_kernel: str = Field(
        "",
        description="naive, best, own (with `source`) or none. If empty, naive if there is a naive"
        " kernel, but none for translate.",
        json_schema_extra=one_of(*SEED_KERNELS),
    )
    source: str = ""
    entry: str = Field("", description="The source file's name, if there are other files.")
    files: dict[str, str] = Field(
        {},
        description="Contents of the other files, by name; the run doesn't change them.",
    )
    seed: StrictInt | None = Field(
        None,
        description="The run's random seed; if left out, one is drawn.",
        json_schema_extra=between(0, SEED_LIMIT - 1),
    )
    agent: str = Field("", description='If empty, "kbench-" followed by the strategy.')
    name: str = Field("", json_schema_extra={"maxLength": NAME_LENGTH})
    private: StrictBool = Field(False, description="Visible only to you and admins.")
    enters_best: StrictBool = Field(False, description="Submit the best candidate at the end.")
    ranks_best: StrictBool = Field(
        True,
        description="After the search, rank and audit the best; this doesn't count toward any cap.",
    )


class RunFilters(Schema):
    """Which runs to return; all parameters are optional."""

    task: str = ""
    device: str = ""
    strategy: str = Field("", json_schema_extra=one_of("", *STRATEGIES))
    status: str = Field("", json_schema_extra=one_of("", *Run.Status.values))
    limit: int = Field(10, ge=1, le=MOST_LISTED)
    after: str = Field("", description="Id of the last run that you have; see the Link header.")


class RunListed(Schema):
    """A run with what it has spent and found so far."""

    id: UUID
    url: str = Field(examples=["/runs/0b7c1f5e-5a0e-4c2f-9a35-2f0c7f2f8a11/"])
    name: str
    task: str
    task_version: int
    direction: str
    device: str
    strategy: str
    agent: str
    user: str
    private: bool
    enters_best: bool
    seed: int
    status: str = Field(examples=["RUNNING"], json_schema_extra=one_of(*Run.Status.values))
    reason: str = Field(
        description="Why it is paused or has ended, or that its best candidates are being ranked."
    )
    by_budget: bool = Field(
        description="Whether it used up its budget; if so, extend the budget to continue."
    )
    usd: float | None = Field(
        description="Null if it used tokens of a language model whose price isn't known."
    )
    tokens: int
    evaluations: int
    active_s: float = Field(
        description="Seconds of searching, excluding pauses and the ranking of its best candidates."
    )
    candidates: int
    budget: dict[str, object]
    seed_latency_ns: float | None
    best_latency_ns: float | None
    over_seed: float | None = Field(
        description="The seed kernel's time divided by the best candidate's, both measured in the"
        " search."
    )
    best: int | None = Field(description="Number of the best candidate.")
    events: int = Field(description="Number of the newest event.")
    created_at: datetime
    ended_at: datetime | None


class RankingOut(Schema):
    """An evaluation after the search, in ranked or audit mode, that checks a candidate."""

    candidate: int
    mode: str = Field(examples=["ranked"])
    verdict: str
    reason: str
    latency_ns: float | None
    is_refusal: bool = Field(
        description="Whether the candidate was incorrect, so that the next one took its place."
    )


class ConfirmationOut(Schema):
    """How far the best candidate has been confirmed."""

    state: str = Field(examples=["audited"], json_schema_extra=one_of(*ConfirmationState))
    words: str
    rankings: list[RankingOut]


class RunOut(RunListed):
    """A run in full."""

    waiting_reason: str = Field(description="Why it isn't making progress; empty if it is.")
    confirmation: ConfirmationOut


class EventOut(Schema):
    """An event of a run: a step of its search, or what a person or the site did."""

    seq: int = Field(examples=[3])
    kind: str = Field(examples=["measured"])
    at: datetime
    payload: dict[str, object]


class EventsOut(Schema):
    """Events in order, and the number of the newest one."""

    events: list[EventOut]
    newest: int
    left_out: int = Field(description="How many later events there are; pass `since` to get them.")


class CandidateOut(Schema):
    """A candidate of a run, with its source and the results of its measurement."""

    number: int
    source: str
    edit: str
    parents: list[int]
    generation: int
    slot: int
    island: int
    model: str
    title: str
    knobs: dict[str, str]
    techniques: list[str]
    state: str = Field(examples=["measured"])
    reason: str
    votes: dict[str, bool]
    verdict: str
    latency_ns: float | None
    speedup: float | None
    floor_fraction: float | None
    bottleneck: str
    feedback: dict[str, object] | None
    submission: UUID | None = Field(
        alias="submission_id", description="The submission whose evaluations measured it."
    )
    entry: UUID | None = Field(alias="entry_id", description="The submission that entered it.")
