"""The queues of a device, by who waits for what is in them."""

from __future__ import annotations

from enum import StrEnum


class Urgency(StrEnum):
    """Who waits for a job, the most urgent first; each value ends the name of its queue.

    Runners take from a queue while those before it here are empty, and whoever is less urgent steps
    aside from the device.
    """

    BUILDS = "-builds"  # mode `compile`: needs no device
    PEOPLE = ""  # somebody submitted it
    RUNS = "-runs"  # a candidate of an optimization run, or of a challenge
    BASELINES = "-baselines"  # those that are compiled for a minute: no result is final before
    AUDITS = "-audits"  # of leaders: a place is provisional without it
    BACKGROUND = "-background"  # the site's own, and nobody waits for it

    @property
    def place(self) -> int:
        """Its place in the order in which runners take jobs, from 0; sites store it."""
        return list(Urgency).index(self)

    @property
    def is_of_people(self) -> bool:
        """Whether a person waits for it."""
        return self in OF_PEOPLE


OF_PEOPLE = (Urgency.BUILDS, Urgency.PEOPLE)
"""A person waits for these."""

OF_THE_SITE = (Urgency.BASELINES, Urgency.AUDITS, Urgency.BACKGROUND)
"""Neither a person nor a run waits for these."""


def queue_name(device: str, urgency: Urgency = Urgency.PEOPLE) -> str:
    """Name of one of a device's RQ queues; `device` is the slug that names its boards."""
    return f"device-{device}{urgency.value}"
