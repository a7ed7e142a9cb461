"""Working copies of tasks, and the audit log of what curators did."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.urls import reverse

from tasks_app.models.task import Task, TaskVersion


class Draft(models.Model):
    """A task that somebody is writing: the texts of its files, which may be wrong in any way.

    What is measured or reviewed is never the draft but a `TaskVersion` made from it: `version`,
    which is of exactly these `files`, or None after a change. `task` is the task of which it will
    be a new version; None while it is to be a task of its own and no version has been made.
    `follows` is the task whose next version it was begun as, `base_version` the version of it that
    was public then; both are empty in a proposal of a new task. `versions` are all that were made
    from it, of earlier files too.
    `taken_by` is the admin who has taken over somebody else's draft: from then on its author
    sees what becomes of it, but not the files, which may hold workloads that are to stay hidden.
    Once it is public, its author sees of the files what everybody may see, taken over or not.
    """

    class State(models.TextChoices):
        """Where it stands."""

        OPEN = "draft", "Draft"  # it can be changed
        REVIEW = "review", "In review"  # an admin is to decide
        PUBLISHED = "published", "Published"  # its version has become the task's public one
        CLOSED = "closed", "Closed"  # withdrawn by its author, or turned down

    UNDER_WAY = (State.OPEN, State.REVIEW)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100, blank=True)  # as it says itself; empty if unreadable
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, null=True, blank=True, related_name="drafts"
    )
    files = models.JSONField()  # texts by relative path; task.toml is one of them
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    revision = models.PositiveIntegerField(default=1)  # counts changes: two editors cannot collide
    version = models.ForeignKey(
        TaskVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="drafts"
    )
    versions = models.ManyToManyField(TaskVersion, blank=True, related_name="made_in")
    follows = models.ForeignKey(
        Task, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    base_version = models.ForeignKey(
        TaskVersion, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="task_drafts"
    )
    taken_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    last_reason = models.TextField(blank=True)  # why it was closed, or sent back last
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        """What was changed last comes first; what is in review or public has a version."""

        ordering = ("-changed_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(state__in=("draft", "closed")) | Q(version__isnull=False),
                name="draft_review_has_version",
            ),
        )

    def __str__(self) -> str:
        return self.name or f"draft {str(self.pk)[:8]}"

    def get_absolute_url(self) -> str:
        """Address of the page on which it is written."""
        return reverse("draft", args=[self.pk])

    def seen_by(self, user: object) -> bool:
        """Whether `user` may know of it: its author and admins."""
        return isinstance(user, User) and (user.pk == self.author_id or user.is_staff)

    @property
    def is_settled(self) -> bool:
        """Whether its version is public or was, so that nobody writes on the draft any more."""
        if self.state in self.UNDER_WAY or self.version is None:
            return False
        return self.version.published_at is not None

    def open_to(self, user: object) -> bool:
        """Whether `user` may see all of its files.

        Admins may, and its author until an admin takes it over or it becomes public: then hidden
        workloads are for admins.
        """
        if not isinstance(user, User):
            return False
        if user.is_staff:
            return True
        is_theirs = user.pk == self.author_id and self.taken_by_id is None
        return is_theirs and not self.is_settled

    def may_be_tried_by(self, user: object) -> bool:
        """Whether `user`, to whom it is open, may have it checked, tried or judged now."""
        if self.state == self.State.PUBLISHED:
            is_admin = isinstance(user, User) and user.is_active and user.is_staff
            return is_admin and self.version_id is not None
        return self.state in self.UNDER_WAY

    def shows_public_part(self, user: object) -> bool:
        """Whether `user` may see of its files only what everybody may see of its version."""
        if not isinstance(user, User) or self.open_to(user):
            return False
        return user.pk == self.author_id and self.is_settled


class AuditEntry(models.Model):
    """Something that somebody did to a task, a draft, a version or the site; rows are only added.

    `actor` is empty where a command on the site's machine did it. `name` is the task's name then,
    or that of another thing; it stays when all else is gone.
    """

    class Kind(models.TextChoices):
        """What was done."""

        UPLOADED = "uploaded", "Uploaded"  # a new draft
        EDITED = "edited", "Edited"
        TAKEN = "taken", "Taken over"
        CHECKED = "checked", "Had checked"  # filters and wrong kernels, on a device
        CANCELLED = "cancelled", "Canceled a check"
        JUDGED = "judged", "Asked a language model"  # for its advice on the task
        TRIED = "tried", "Tried its kernels"  # dry run
        SENT = "sent", "Sent to review"
        RETURNED = "returned", "Sent back"
        CLOSED = "closed", "Closed"
        PUBLISHED = "published", "Published"
        OVERRIDDEN = "overridden", "Published without a proof"
        CHANGED_VERSION = "version", "Made another version public"
        RETIRED = "retired", "Retired"
        RESTORED = "restored", "Restored"
        CONTAMINATED = "contaminated", "Marked contaminated"
        CLEARED = "cleared", "Cleared of contamination"
        LABELLED = "labelled", "Labeled"  # tags and difficulty
        REEVALUATED = "reevaluated", "Had submissions evaluated again"
        LOADED = "loaded", "Loaded"  # by manage.py load_tasks
        SIGN_UP = "sign_up", "Decided who may sign up"
        INVITED = "invited", "Invited"
        ACCOUNT = "account", "Changed an account"
        QUOTA = "quota", "Changed a quota"
        SWITCHED = "switched", "Stopped or reopened"  # submissions or runs, for everybody
        STEERED = "steered", "Steered a runner"
        RUNNER_ADDED = "runner_added", "Added a runner"
        RUNNER_REVOKED = "runner_revoked", "Revoked a runner's token"
        RUNNER_CLEARED = "runner_cleared", "Cleared doubts about a runner"
        EMPTIED = "emptied", "Emptied a queue"
        ANNOUNCED = "announced", "Announced"
        MODEL = "model", "Set up a language model"
        DECIDED = "decided", "Ruled on a suspicious result"
        CHALLENGE = "challenge", "Published a challenge"

    kind = models.CharField(max_length=15, choices=Kind.choices)
    name = models.CharField(max_length=100, blank=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    task = models.ForeignKey(
        Task, on_delete=models.SET_NULL, null=True, blank=True, related_name="audit_entries"
    )
    version = models.ForeignKey(
        TaskVersion, on_delete=models.SET_NULL, null=True, blank=True, related_name="audit_entries"
    )
    draft = models.ForeignKey(
        Draft, on_delete=models.SET_NULL, null=True, blank=True, related_name="audit_entries"
    )
    reason = models.TextField(blank=True)
    details = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-created_at", "-pk")
        verbose_name_plural = "audit entries"
        indexes = (models.Index(fields=("-created_at",), name="act_newest"),)

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.name}"
