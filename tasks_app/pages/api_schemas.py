"""What the API answers about tasks: their fields, and what each means."""

from __future__ import annotations

from datetime import datetime

from ninja import Field, Schema


class TaskListed(Schema):
    """A task in the list."""

    name: str = Field(examples=["softmax"])
    abi: str = Field(examples=["c"])
    dtype: str = Field(examples=["float32"])
    directions: list[str] = Field(examples=[["forward"]])
    difficulty: str = Field(description="easy, medium or hard; empty if not set.")


class TaskSummary(TaskListed):
    """A task in the list, with `fields=all`."""

    title: str = Field(examples=["Row-wise softmax"])
    scenario: str = Field(examples=["llm"])
    version: int = Field(examples=[1])
    url: str = Field(examples=["/tasks/softmax/"])
    tags: list[str] = Field(examples=[["attention", "reduction"]])
    contaminated: str = Field(description="Why it's left out of aggregates; empty if it isn't.")


class SoundnessOut(Schema):
    """Results of the wrong kernels made from the reference, and of the task's filters."""

    passed: bool
    mutants: int
    survivors: list[str] = Field(description="Wrong kernels that pass the task.")
    filters: int = Field(description="0: the report has no filters, so it proves nothing.")
    flagged: list[str] = Field(description="Filters that flag the task.")
    refusal: str = Field(description="Why the version is not sound; empty if it is.")
    device: str = Field(examples=["cpu"])
    kind: str = Field(
        examples=["cpu"], description="Kind of the device; each kind has its own report."
    )


class FilterOut(Schema):
    """What a filter found in one direction."""

    name: str = Field(examples=["input impact: weight"])
    direction: str
    workload: str
    value: float | str | None = Field(description="Null if unknown.")
    limit: str = Field(examples=["at most 0.9"])
    passed: bool | None = Field(description="Null if unknown.")
    text: str


class TriedKernelOut(Schema):
    """A kernel made from the reference, with its result on the most telling workload."""

    name: str = Field(examples=["half the reduction"])
    direction: str
    workload: str
    scaled: float | str | None = Field(
        description="Largest error divided by the allowed error; inf and nan are strings."
    )


class MutantOut(TriedKernelOut):
    """A wrong kernel."""

    state: str = Field(
        description="failed; survived; equivalent: matches the reference on every workload; or"
        " untried: matches it wherever the shapes fit, but they don't fit everywhere."
    )


class HonestOut(TriedKernelOut):
    """A correct kernel."""

    reason: str = Field(
        default="", description="Where it exceeds the bound; empty if it is correct."
    )


class UnlistedOut(Schema):
    """What a brief report counts but doesn't list, for one direction."""

    failed: dict[str, int] = Field(description="Number of wrong kernels that fail, by workload.")
    passed: int = Field(description="Number of filters that passed.")
    right: int = Field(description="Number of honest kernels that are correct.")


class SoundnessDetail(Schema):
    """A soundness report of a task's current version, with the keys that `gpu_runner filter`
    writes.
    """

    task: str
    version: int
    digest: str
    device: str = Field(examples=["cpu"])
    kind: str = Field(
        examples=["cpu"], description="Kind of the device; each kind has its own report."
    )
    created_at: datetime = Field(description="When the site received the report.")
    passed: bool
    refusal: str = Field(description="Why the version is not sound; empty if it is.")
    survivors: list[str]
    mutants: list[MutantOut]
    honest: list[HonestOut] = Field(
        description="Honest kernels; a reason means that the kernel exceeds the bound."
    )
    filters: list[FilterOut]
    unlisted: dict[str, UnlistedOut] = Field(
        description="What a brief report omits because it shows no problem, by direction. Reports"
        " that come with kbench are brief; reports made by a site's runners list everything."
    )


class TaskDetail(TaskSummary):
    """A task with everything that a kernel author needs."""

    digest: str = Field(description="SHA-256 of the version; scores attach to it.")
    state: str = Field(examples=["published"])
    soundness: SoundnessOut | None = Field(
        description=(
            "The deciding report, if there are several. Null if the version has no report."
        )
    )
    unseen: list[str] = Field(description="Kinds of devices whose workloads no report covers.")
    override: str = Field(description="Why it was published without a proof; usually empty.")
    document: dict[str, object] = Field(
        description="The task: signature, workloads, tolerance, work formula, reference source."
    )
    left_out: list[str] = Field(
        examples=[["document.files: kernels/good.cpp"]],
        description="Shipped kernels whose sources `document.files` omits; fields=all adds them.",
    )


class VersionSummary(Schema):
    """A version of a task; admins also see versions that were never public."""

    number: int = Field(examples=[2])
    digest: str = Field(description="SHA-256 of the version; scores attach to it.")
    current: bool = Field(
        description="Whether results on this version are ranked, while the task is public."
    )
    published_at: datetime | None = Field(description="Null if it was never public.")
    created_at: datetime
    changes: str = Field(
        description="What changed since the previous public version; empty if not compared.",
        examples=["1 file changed, +2 −1 lines; 1 new workload: n8192"],
    )
    url: str = Field(examples=["/tasks/softmax/versions/2/"])


class FactChangeOut(Schema):
    """A fact about the task or a workload, before and after; empty if a version doesn't have it."""

    name: str = Field(examples=["Tolerance"])
    before: str
    after: str


class FileChangeOut(Schema):
    """A file that differs."""

    path: str = Field(examples=["task.toml"])
    state: str = Field(description="new, gone or changed.")
    added: int = Field(alias="diff.added", description="Number of lines.")
    removed: int = Field(alias="diff.removed", description="Number of lines.")
    diff: str | None = Field(
        alias="diff.unified", description="Unified diff without its header; null if too large."
    )


class VersionDetail(Schema):
    """A version, and how it differs from another one."""

    task: str = Field(examples=["softmax"])
    number: int
    digest: str
    published_at: datetime | None
    created_at: datetime
    against: int | None = Field(
        description="Number of the version compared with; null if everything is new."
    )
    facts: list[FactChangeOut]
    workloads: list[FactChangeOut]
    files: list[FileChangeOut] = Field(
        description="The task's files; only admins see hidden workloads."
    )
    hidden_differ: bool = Field(
        description="Whether hidden workloads differ; they aren't shown here."
    )
    withheld_differ: bool = Field(
        description="Whether files that could list hidden workloads differ."
    )
    document: dict[str, object] = Field(description="The task, as under /tasks/{slug}.")
    left_out: list[str] = Field(description="As under /tasks/{slug}.")
