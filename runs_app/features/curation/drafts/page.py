"""What the pages of drafts show: faults, facts, what to do next, and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils import timezone

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import catalog_folder
from gpu_runner.data.formats.folder import Fault, read_folder
from gpu_runner.data.formats.kbench import REFERENCE, SPECIFICATION
from gpu_runner.data.formats.text import list_files, read_files
from gpu_runner.data.formats.toml_lines import field_lines, line_of
from gpu_runner.data.task import Task as TaskData
from gpu_runner.data.verdict import DeviceKind
from runs_app.core.queue.checks import checks_under_way
from runs_app.features.curation.drafts.files import overtaken_by
from runs_app.features.curation.drafts.services import may_reopen, may_write
from tasks_app.disclosure import public_task, sees_hidden
from tasks_app.formats.task_writing import write_folder
from tasks_app.models import Draft, Soundness, TaskVersion
from tasks_app.pages.audit_page import AuditLine, audit_lines
from tasks_app.people import Viewer, shown_name
from tasks_app.publishing.snapshots import task_refusals

_EXAMPLE = catalog_folder().with_name("example")
_FIRST_FILES = (SPECIFICATION, REFERENCE)
_WAIT = "Wait until it ends"


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """A file in the list; `faults` counts what is wrong in it."""

    path: str
    faults: int
    is_open: bool


@dataclass(frozen=True, kw_only=True)
class Step:
    """Where it stands, and what is to be done next; `tone` is the notice's class.

    meanwhile: what to do in place of `order` while a check of it is under way.
    """

    text: str = ""
    order: str = ""
    meanwhile: str = ""
    tone: str = ""


class DraftRow:
    """A draft in a list, with what is wrong with it or speaks against it."""

    def __init__(self, draft: Draft, user: Viewer) -> None:
        self.draft = draft
        self.bench = Workbench(draft, user)

    @property
    def words(self) -> str:
        """What is wrong with it while it is open, what speaks against publishing it in review."""
        if self.draft.state == Draft.State.REVIEW:
            return self.bench.obstacle or self.bench.refusal
        if self.draft.state == Draft.State.CLOSED:
            return self.draft.last_reason
        faults = self.bench.faults if self.draft.state == Draft.State.OPEN else ()
        if not faults:
            reason = self.bench.sent_back
            return f"sent back: {reason}" if reason else ""
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        return f"{faults[0]}{more}"


class Workbench:
    """A draft as one of its viewers sees it; nothing of it is executed."""

    def __init__(self, draft: Draft, user: Viewer, path: str = "") -> None:
        """Show the file of that path, or the first one."""
        self.draft = draft
        self.user = user
        self.is_open = draft.open_to(user)
        self.is_public_part = draft.shows_public_part(user)
        self.may_write = self.is_open and may_write(draft, user)
        self.is_author = user.pk == draft.author_id
        self.is_admin = sees_hidden(user)
        self._asked = path

    @cached_property
    def path(self) -> str:
        """Path of the file that is shown; empty where there is none."""
        return self._asked if self._asked in self.texts else next(iter(_in_order(self.texts)), "")

    @property
    def text(self) -> str:
        """Text of the file that is shown."""
        return str(self.texts[self.path]) if self.path else ""

    @property
    def withholds(self) -> bool:
        """Whether files of what is public now are shown without their hidden workloads."""
        version = self.draft.version
        return self.is_public_part and version is not None and bool(version.hidden_names)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The texts of its files by path, as far as this viewer may see them."""
        version = self.draft.version
        is_own = self.draft.taken_by_id is None  # else comments and the like are of admins
        if self.is_open or (self.is_public_part and is_own and not self.withholds):
            files: Mapping[str, str] = self.draft.files
            return files
        if not self.is_public_part or version is None:
            return {}
        try:
            return write_folder(codec.decode(TaskData, public_task(version.document)))
        except DataError:  # all of its workloads are hidden
            return {}

    @cached_property
    def _read(self) -> tuple[TaskData | None, tuple[Fault, ...]]:
        return read_draft(self.draft)

    @property
    def data(self) -> TaskData | None:
        """The task as far as it can be read, for those who may see its files.

        Of what is public all know the numbers of workloads, and more is not to be shown of it.
        """
        if self.is_public_part and self.draft.version is not None:
            return self.draft.version.data
        return self._read[0] if self.is_open else None

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with the files, for those who may see them."""
        return self._read[1] if self.is_open else ()

    @property
    def fault_lines(self) -> list[int]:
        """Lines of the shown file in which something is wrong."""
        found = {fault.line for fault in self.faults if fault.file == self.path and fault.line}
        return sorted(line for line in found if line is not None)

    @property
    def files(self) -> list[FileEntry]:
        """The files, the two that every task has first."""
        wrong = [fault.file for fault in self.faults]
        return [
            FileEntry(
                path=path,
                faults=wrong.count(path),
                is_open=path == self.path,
            )
            for path in _in_order(self.texts)
        ]

    @property
    def workloads(self) -> list[tuple[str, int, int]]:
        """Kinds of devices with their numbers of listed and of hidden workloads."""
        rows = self.data.workloads if self.data else ()
        counts = []
        for kind in DeviceKind:
            mine = [workload.hidden for workload in rows if kind in workload.devices]
            counts.append((kind.value, len(mine) - sum(mine), sum(mine)))
        return counts

    @cached_property
    def soundness(self) -> Soundness | None:
        """The report that decides about the draft's version, if there is one."""
        return self.draft.version.report if self.draft.version else None

    @property
    def order(self) -> str:
        """What is to be done next; while a check of its version is under way, what that does."""
        step, version = self.step, self.draft.version_id
        if not step.meanwhile or version is None:
            return step.order
        does = checks_under_way(timezone.now(), version).get(version)
        return f"A check {does}. {step.meanwhile}" if does else step.order

    @cached_property
    def refusal(self) -> str:
        """Why its version may not be published; for admins, for it may name hidden workloads."""
        version = self.draft.version
        return version.briefly_unproven if self.is_admin and version is not None else ""

    @cached_property
    def obstacle(self) -> str:
        """Why what is in review may not be published with any reason; for who sees its files."""
        version = self.draft.version
        if version is None or self.draft.state != Draft.State.REVIEW or not self.is_open:
            return ""
        refused = task_refusals(self.draft, version.data)
        return "; ".join(f"{field}: {reason}" for field, reason in refused.items())

    @cached_property
    def evidence(self) -> str:
        """Which reports of its version are shown, for the forms that decide about it."""
        return self.draft.version.evidence if self.draft.version else ""

    @property
    def report_of_stranger(self) -> bool:
        """Whether its report was made with the code of an author who is no admin."""
        return self.soundness is not None and not self.draft.author.is_staff

    @property
    def hidden_writer(self) -> str:
        """Who wrote its hidden workloads and is no admin; empty once an admin has taken it over."""
        version, author = self.draft.version, self.draft.author
        if author.is_staff or self.draft.taken_by_id is not None or version is None:
            return ""
        return shown_name(author) if version.hidden_names else ""

    @cached_property
    def overtaken_by(self) -> TaskVersion | None:
        """The version that has become public since it was begun, for those who see its files."""
        return overtaken_by(self.draft) if self.is_open else None

    @cached_property
    def history(self) -> list[AuditLine]:
        """What was done to it, the newest first; names of files only for those who see them."""
        entries = self.draft.audit_entries.select_related("actor", "version")
        return audit_lines(entries, with_files=self.is_open)

    @property
    def sent_back(self) -> str:
        """What is to be changed, as an admin said, until it is sent to review again."""
        waits = self.draft.state == Draft.State.OPEN and self.is_open
        return self.draft.last_reason if waits else ""

    @property
    def actions(self) -> tuple[str, ...]:
        """What this viewer may do with it now: send, publish, reopen, back, take, close."""
        draft, found = self.draft, []
        open_now = draft.state == Draft.State.OPEN
        review = draft.state == Draft.State.REVIEW
        if self.may_write:
            found.append("send")
        if self.is_admin and review and not self.obstacle:
            found.append("publish")
        if may_reopen(draft, self.user):
            found.append("reopen")
        elif self.is_admin and review:
            found.append("back")
        untaken = draft.taken_by_id is None and not self.is_author
        if self.is_admin and untaken and (open_now or review):
            found.append("take")
        if (open_now or review) and (self.is_admin or (self.is_author and self.is_open)):
            found.append("close")
        return tuple(found)

    @property
    def step(self) -> Step:
        """What is to be done next, and by whom."""
        if self.draft.state == Draft.State.CLOSED:
            return Step(text=self.draft.last_reason, tone="warn")
        if self.draft.state == Draft.State.PUBLISHED:
            return Step(text=f"It became {self.draft.version}.", tone="good")
        if not self.is_open:
            return Step(
                text="An admin has taken it over and will decide; you don't need to do anything."
            )
        if self.draft.state == Draft.State.REVIEW:
            return self._step_in_review()
        return self._step_while_open()

    def _step_in_review(self) -> Step:
        if self.obstacle:
            mine = may_reopen(self.draft, self.user)
            order = "Take it back and fix this" if mine else "Send it back"
            return Step(text=f"It cannot be published: {self.obstacle}. {order}.", tone="bad")
        if not self.is_admin:
            return Step(text="An admin will decide; until then, its files stay as they are.")
        if self.refusal:
            return self._step_against()
        gaps = self._gaps()
        but = f", but {' and '.join(gaps)}" if gaps else ""
        text = f"No problems were found{but}: publish it, or send it back."
        return Step(text=text, tone="warn" if gaps else "good")

    def _step_against(self) -> Step:
        """Of what is in review and not proven sound, for admins."""
        text = f"It cannot be published without a reason: {self.refusal}."
        back = "take it back" if may_reopen(self.draft, self.user) else "send it back"
        if self.soundness is None:
            order = f"Check it below, or {back}."
        else:
            order = f"{back.capitalize()} to be fixed, or publish it anyway and say why."
        return Step(text=text, order=order, meanwhile=f"{_WAIT}, then decide.", tone="warn")

    def _gaps(self) -> list[str]:
        """What was not looked at, of what nothing speaks against."""
        version, gaps = self.draft.version, []
        if version is not None and version.unseen:
            kinds = " and ".join(version.unseen)
            gaps.append(f"nobody has checked its workloads for {kinds}")
        report = self.soundness
        if report is not None and report.untried:
            one = report.untried == 1
            words = f"{report.untried} of {report.mutants} wrong kernels"
            gaps.append(f"{words} {'was' if one else 'were'} not tried")
        return gaps

    def _step_while_open(self) -> Step:
        if not self.may_write:
            return Step(text="Its author is still writing it. Take it over to change it yourself.")
        if self.faults:
            return Step(text="Fix the problems; we keep your files in the meantime.", tone="bad")
        if self.soundness is None:
            then = "if it is sound, send it to review."
            order = f"Check it and try its kernels below; {then}"
            return Step(order=order, meanwhile=f"{_WAIT}; {then}")
        if not self.soundness.passed:
            text = "Its check found problems; see below."
            order = "Fix them, or send the draft to review as it is."
            return Step(text=text, order=order, meanwhile=f"{_WAIT}.", tone="warn")
        if self.sent_back:
            return Step(
                text="It is sound. Make the changes that were requested, then send it to review."
            )
        return Step(text="It is sound: send it to review.", tone="good")


def read_draft(draft: Draft) -> tuple[TaskData | None, tuple[Fault, ...]]:
    """The task of a draft if it can be read, and all that is wrong with it, its name included."""
    data, faults = read_folder(draft.files)
    if draft.state not in Draft.UNDER_WAY:
        return data, faults
    found = task_refusals(draft, data)
    if not found:
        return data, faults
    lines = field_lines(draft.files[SPECIFICATION])  # it has a name, and so it is TOML
    refused = [
        Fault(field=field, reason=reason, file=SPECIFICATION, line=line_of(lines, field))
        for field, reason in found.items()
    ]
    return data, (*faults, *refused)


def example_files() -> dict[str, str]:
    """The texts of a small task that works, to start from."""
    return read_files(_EXAMPLE, list_files(_EXAMPLE))


def find_draft(draft_id: UUID, user: Viewer) -> Draft | None:
    """The draft, or None if there is none that `user` may know of."""
    draft = (
        Draft.objects.select_related("task__current_version", "version__task", "author", "taken_by")
        .filter(pk=draft_id)
        .first()
    )
    return draft if draft is not None and draft.seen_by(user) else None


_LISTED = Draft.objects.select_related("task", "version", "author", "taken_by")


def own_drafts(user: User) -> QuerySet[Draft]:
    """The user's drafts, and those of others that they took over; the last changed first."""
    return _LISTED.filter(Q(author=user) | Q(taken_by=user))


def drafts_in_review() -> QuerySet[Draft]:
    """What waits for an admin's decision, longest wait first."""
    rows = _LISTED.filter(state=Draft.State.REVIEW).defer("files")
    return rows.order_by("changed_at", "pk")


def open_drafts_of_others(user: User) -> QuerySet[Draft]:
    """Drafts by others, most recently changed first."""
    rows = _LISTED.filter(state=Draft.State.OPEN).defer("files")
    return rows.exclude(author=user).exclude(taken_by=user)


def _in_order(files: Mapping[str, str]) -> list[str]:
    first = [path for path in _FIRST_FILES if path in files]
    return [*first, *sorted(path for path in files if path not in _FIRST_FILES)]
