"""What the guide for agents and the API by example show of this site."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ApiPage:
    """This site's address, the client's, and how often one may ask and submit."""

    host: str
    wheel: str
    per_minute: int
    per_day: int


@dataclass(frozen=True, kw_only=True)
class GuidePage(ApiPage):
    """The same with the client's version, how many submissions of one may wait, and the devices.

    cpp_flags, cuda_flags: what every build gets. devices: each with what is known of its host.
    """

    version: str
    waiting: int
    cpp_flags: str
    cuda_flags: str
    devices: list[tuple[str, list[str]]]
