"""Devices that kernels run on, and the runners that own them."""

from __future__ import annotations

from django.db import models

from gpu_runner.data.verdict import DeviceKind, Language


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
        """Devices are listed by slug."""

        ordering = ("slug",)

    def __str__(self) -> str:
        """Name for people, such as "NVIDIA H200"."""
        return self.name

    @property
    def language(self) -> Language:
        """Language that is compiled for this device."""
        return DeviceKind(self.kind).language

    @property
    def languages(self) -> tuple[Language, ...]:
        """Languages of the kernels that run on this device, the compiled one first."""
        return DeviceKind(self.kind).languages


class Runner(models.Model):
    """One host with its daemon, as its last heartbeat described it."""

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

    name = models.CharField(max_length=150, unique=True)
    boot_id = models.CharField(max_length=100)
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="runners")
    state = models.CharField(max_length=10, choices=State.choices)
    reason = models.TextField(blank=True)
    jail = models.BooleanField()
    current = models.JSONField(default=list)  # ids of the evaluations at work
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
        """Runners are listed by name."""

        ordering = ("name",)

    def __str__(self) -> str:
        """Name of the runner."""
        return self.name
