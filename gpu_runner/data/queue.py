"""The queues of a device, by who waits for what is in them."""

from __future__ import annotations

from enum import StrEnum


class Urgency(StrEnum):
    """Who waits for a job; runners take from a queue while those before it here are empty.

    Each value ends the name of its queue.
    """

    PEOPLE = ""  # somebody submitted it, or a run asked for it
    AUDITS = "-audits"  # the site's own, and a place on a board stays unverified without it
    BACKGROUND = "-background"  # the site's own, and nobody waits for it


def queue_name(device: str, urgency: Urgency = Urgency.PEOPLE) -> str:
    """Name of one of a device's RQ queues; `device` is the slug that names its boards."""
    return f"device-{device}{urgency.value}"
