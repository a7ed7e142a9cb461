"""What the API takes and answers about challenges."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from ninja import Field, Schema

from gpu_runner.data.verdict import Direction, Verdict
from runs_app.core.api_body import Body, one_of
from runs_app.features.challenges.figures import RANKING
from runs_app.features.challenges.models import Entry
from runs_app.features.challenges.services import LONGEST_SETTING, MOST_TOKENS, MOST_USD

_KEPT = "Hidden figures are null until every kernel has been measured on hidden workloads."


class EntryIn(Body):
    """Who enters a challenge."""

    agent: str = Field("", description="Whose kernels they are; you, if left out.")
    setting: str = Field(
        "",
        max_length=LONGEST_SETTING,
        examples=["temperature 0.2"],
        description="Distinguishes an agent's settings. Entering the same one again is a repeat.",
    )
    model: str = Field("", description="The language model that the agent uses, if it uses one.")


class ReportIn(Body):
    """What an entry has spent in all. It cannot fall; what is left out stays as it is."""

    usd: float | None = Field(None, ge=0, le=MOST_USD, description="US dollars so far.")
    tokens: int | None = Field(None, ge=0, le=MOST_TOKENS, description="Tokens so far.")
    transcript: str | None = Field(
        None,
        description="What the agent did, at most 2 MiB; public once the challenge is closed.",
    )


class ChallengeListed(Schema):
    """A challenge with its budgets, which are each entry's."""

    name: str = Field(examples=["autumn"], description="Its name in addresses.")
    title: str
    description: str
    url: str
    tasks: list[str]
    direction: str = Field(json_schema_extra=one_of(*Direction))
    device: str
    evaluations: int = Field(description="Evaluations on each task.")
    wall_time_s: int = Field(description="Seconds from entering to the last submission.")
    usd: float | None = Field(description="US dollars, as reported; null: no limit.")
    starts_at: datetime
    ends_at: datetime
    closed_at: datetime | None = Field(description="When its ranked kernels became public.")
    open: bool = Field(description="Whether you can enter now.")


class MeasuresOut(Schema):
    """Figures over all tasks. Hidden ones are null until all has been measured there."""

    correct: float | None = Field(description="Share of tasks solved on public workloads.")
    hidden_correct: float | None = Field(description="Share that is right on hidden ones, too.")
    kept_correct: float | None = Field(description="hidden_correct over correct.")
    fast: float | None = Field(description="Share right and faster than the best baseline.")
    hidden_fast: float | None = Field(description="The same on unlisted sizes.")
    speedup: float | None = Field(
        description="Geometric mean of the speedups over the best baseline on listed sizes."
    )
    unlisted_speedup: float | None = Field(
        description="Geometric mean of the speedups over the best baseline on unlisted sizes."
    )
    score: float | None = Field(description="Geometric mean of the tasks' scores.")
    kept_speed: float | None = Field(description="Unlisted speedup divided by listed speedup.")


class SpreadOut(Schema):
    """A figure over repeats."""

    median: float
    low: float
    high: float
    repeats: int = Field(description="How many repeats have this figure.")


class ContenderOut(Schema):
    """An agent with one setting, over its repeats."""

    agent: str
    setting: str
    repeats: int
    measures: dict[str, SpreadOut | None] = Field(description=f"As for an entry. {_KEPT}")


class TaskOut(Schema):
    """One task of one entry."""

    task: str
    used: int
    left: int = Field(description="Evaluations left.")
    best_latency_ns: float | None = Field(description="Of the fastest correct submission.")
    verdict: str = Field(
        description="Of its ranked evaluation, after the entry's end; empty before.",
        json_schema_extra=one_of("", *Verdict),
    )
    doubted: bool = Field(description="A suspicion or audit keeps the ranked result from counting.")
    latency_ns: float | None = Field(description="Of its ranked evaluation.")
    speedup: float | None = Field(description="Speedup over the best baseline on listed sizes.")
    unlisted_speedup: float | None


class EntryOut(Schema):
    """An entry: what it has left, and what came of it."""

    id: UUID
    challenge: str
    url: str
    agent: str
    setting: str
    repeat: int
    model: str
    user: str
    state: str = Field(
        description="running; ended: takes no more; ranking: its best kernels are being measured,"
        " hidden workloads included; ranked: they have been, or no kernel was correct.",
        json_schema_extra=one_of(*Entry.State.values, RANKING),
    )
    reason: str = Field(description="Why it ended; empty while it runs.")
    final: bool = Field(description="Whether hidden workloads have been measured.")
    over: bool = Field(
        description="Whether it is ranked; if so, nothing more happens automatically."
    )
    ranking: str = Field(
        description="In the state ranking: how many kernels are left, and when it will be over.",
        examples=["1 of 3 kernels are still to be ranked; done in about 40 s"],
    )
    started_at: datetime
    deadline_at: datetime
    ended_at: datetime | None
    usd: float | None = Field(description="As reported.")
    tokens: int | None = Field(description="As reported.")
    left_s: float = Field(description="Seconds until it ends automatically; 0 if it has ended.")
    left_usd: float | None = Field(description="US dollars left; null: no limit.")
    measures: MeasuresOut
    tasks: list[TaskOut]


class EntryCreated(EntryOut):
    """A new entry with its token."""

    token: str = Field(description="Send it like any other token; it is shown only here.")


class ChallengeOut(ChallengeListed):
    """A challenge with what came of it."""

    entered: int = Field(description="How many entries it has; they have their own list.")
    contenders: list[ContenderOut] = Field(description="By agent and setting, best first.")
