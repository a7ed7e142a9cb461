"""Devices that kernels run on, the runners that own them, and the tokens by which we know these."""

from __future__ import annotations

import re

from django.conf import settings
from django.db import models
from django.db.models import Q

from gpu_runner.data.verdict import DeviceKind, Language


def short_name(name: str) -> str:
    """A device's name without its maker and kind of memory, such as "H100 (imported)"."""
    return re.sub(r"^NVIDIA | \d+GB HBM\w+", "", name)


class Device(models.Model):
    """A kind of hardware with a queue and a board of its own, such as "cpu" or "nvidia-h200".

    One with `imported_from` holds what another site measured: a board alone, and no runner.
    """

    slug = models.SlugField(max_length=60, primary_key=True)
    kind = models.CharField(max_length=10, choices=[(k.value, k.value) for k in DeviceKind])
    name = models.CharField(max_length=150)
    imported_from = models.CharField(max_length=40, blank=True)  # the site; empty for our own
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.name

    @property
    def short_name(self) -> str:
        """The same in short, for badges and cells."""
        return short_name(self.name)

    @property
    def language(self) -> Language:
        """Language that is compiled for this device."""
        return DeviceKind(self.kind).language

    @property
    def languages(self) -> tuple[Language, ...]:
        """Languages of the kernels that run on this device, the compiled one first."""
        return DeviceKind(self.kind).languages


class RunnerToken(models.Model):
    """Who a runner is. An admin makes it; its text is shown once, and only its digest is stored.

    Several daemons may show the same one: one for each GPU of a host, or each node of a cluster.
    """

    class Serves(models.TextChoices):
        """Which devices its runners may work for."""

        LISTED = "listed", "The devices chosen below"
        NEW = "new", "These, and devices that this site doesn't know yet"
        ANY = "any", "Any device"

    name = models.SlugField(max_length=40, unique=True)
    digest = models.CharField(max_length=64, unique=True)  # SHA-256; the token has 256 random bits
    prefix = models.CharField(max_length=12)  # shown, so that people can tell it from others
    serves = models.CharField(max_length=10, choices=Serves.choices, default=Serves.LISTED)
    devices = models.ManyToManyField(Device, blank=True, related_name="tokens")
    trusted = models.BooleanField(default=False)  # the admins control its hosts
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def mailbox(self) -> str:
        """Name of its login on the runners' Redis, and of what it reads and writes there."""
        return f"runner-{self.pk}"


class Runner(models.Model):
    """One host with its daemon, as its last heartbeat described it.

    `name` begins with that of its token, and so is nobody else's.
    """

    class State(models.TextChoices):
        """What the daemon is ready to do."""

        READY = "ready", "Ready"
        DRAINING = "draining", "Draining"
        STOPPED = "stopped", "Stopped"
        UNFIT = "unfit", "Unfit"

    class Wanted(models.TextChoices):
        """What an admin wants it to do."""

        WORK = "work", "Work"
        DRAIN = "drain", "Drain"  # finish what it does, and take nothing more
        DISABLE = "disable", "Disable"  # give back what it does, and take nothing more

    token = models.ForeignKey(RunnerToken, on_delete=models.PROTECT, related_name="runners")
    name = models.CharField(max_length=150, unique=True)
    boot_id = models.CharField(max_length=100)
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="runners")
    state = models.CharField(max_length=10, choices=State.choices)
    reason = models.TextField(blank=True)
    jail = models.BooleanField()
    current = models.JSONField(default=list)  # names of the jobs at work
    builds = models.PositiveIntegerField(default=1)
    version = models.CharField(max_length=50, blank=True)
    compiler = models.CharField(max_length=100, blank=True)  # which it builds sources with
    architecture = models.CharField(max_length=50, blank=True)  # and what for
    packages = models.JSONField(default=dict)  # for Python kernels: name -> version
    wanted = models.CharField(max_length=10, choices=Wanted.choices, default=Wanted.WORK)
    wanted_reason = models.TextField(blank=True)
    booted_at = models.DateTimeField()
    seen_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def own_name(self) -> str:
        """What the runner calls itself."""
        return self.name.removeprefix(f"{self.token.name}.")


class RunnerFlag(models.Model):
    """Why the runners of a token are in doubt, until an admin has looked.

    evaluation: the one that shows it, if there is one.
    """

    token = models.ForeignKey(RunnerToken, on_delete=models.CASCADE, related_name="flags")
    reason = models.TextField()
    evaluation = models.ForeignKey(
        "runs_app.Evaluation", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True, blank=True)
    cleared_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ("-at", "-pk")
        indexes = (
            models.Index(
                fields=("token",), condition=Q(cleared_at__isnull=True), name="runner_flag_open"
            ),
        )

    def __str__(self) -> str:
        return f"{self.token} {self.at:%Y-%m-%d}"
