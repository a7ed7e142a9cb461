"""Keys of the Redis through which a site's own hosts get jobs; each login reaches its own alone.

A mailbox is the name of a login, such as `runner-12`. The queues beside it are RQ's; they hold
names of jobs, never what is in them.
"""

from __future__ import annotations

import hashlib
import re

MAILBOX = re.compile(r"runner-[1-9][0-9]{0,17}")
"""A login's name; the number is the key of its row on the site."""

EVENT, ASK = "event", "ask"
"""The one field of an entry in the stream `events_key`: JSON of an `Event` or an `Ask`."""


def events_key(mailbox: str) -> str:
    """The stream of what the login's runners say."""
    return f"kbench:{mailbox}:events"


def answer_key(mailbox: str, ticket: str) -> str:
    """The list with the answer to one ask: JSON of an `Order`, or null."""
    return f"kbench:{mailbox}:answer:{ticket}"


def word_key(mailbox: str, runner: str) -> str:
    """The site's latest `Word` to a runner, as JSON; missing where there is nothing to say."""
    return f"kbench:{mailbox}:word:{runner}"


def rq_id(device: str, job: str) -> str:
    """RQ's id of a job in a queue of the device; tells devices apart whose slugs begin alike."""
    return f"{hashlib.sha256(device.encode()).hexdigest()[:12]}-{job}"


def job_of(rq_id: str) -> str:
    return rq_id.partition("-")[2]
