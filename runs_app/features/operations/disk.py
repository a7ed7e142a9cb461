"""How much room the disk of the data folder has left, and when that is too little."""

from __future__ import annotations

import functools
import logging
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.template.defaultfilters import filesizeformat

log = logging.getLogger(__name__)

# A busy site writes some hundred MB a day, so an admin has days; a small disk is not always low.
_ENOUGH_SHARE, _ENOUGH_BYTES = 0.05, 2 << 30
_EVERY_S = 3600


@dataclass(frozen=True)
class Disk:
    """The disk of a folder: its size and what is left of it for us, in bytes."""

    folder: Path
    free: int
    total: int

    @property
    def is_low(self) -> bool:
        """Whether less is free than 2 GiB and than 5 % of it."""
        return self.free < min(self.total * _ENOUGH_SHARE, _ENOUGH_BYTES)

    def __str__(self) -> str:
        return (
            f"the disk with {self.folder} has {filesizeformat(self.free)} of"
            f" {filesizeformat(self.total)} left; once it is full, nothing more can be stored"
        )


def data_disk() -> Disk | None:
    """The disk of the data folder; None on a site on PostgreSQL that has no such folder."""
    folder = Path(settings.DATA_DIR)
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return Disk(folder, usage.free, usage.total)


def low_disk() -> Disk | None:
    """The disk of the data folder if it has too little room, else None."""
    disk = data_disk()
    return disk if disk and disk.is_low else None


def warn() -> None:
    """Log a warning while the disk is low, once an hour."""
    if low_disk() is not None:
        _warn(int(time.time()) // _EVERY_S)


@functools.lru_cache(maxsize=1)
def _warn(_hour: int) -> None:
    log.warning("%s", low_disk())
