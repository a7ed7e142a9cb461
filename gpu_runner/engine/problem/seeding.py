"""Seeds generators: torch's, those of devices where there is one, Python's and numpy's."""

from __future__ import annotations

import functools
import random
import sys
import zlib
from types import ModuleType
from weakref import WeakSet

import torch

_NUMPY_SEED_MASK = 2**32 - 1  # numpy takes seeds of 32 bits
_followed: WeakSet[ModuleType] = WeakSet()


def reseed(seed: int) -> None:
    """The same as `torch.manual_seed`, which writes down a stack for every kind of device.

    Where CUDA is not there it keeps all of these, and takes a hundred times as long.
    """
    if _has_cuda():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def reseed_all(seed: int) -> None:
    """Seed whatever a task may draw from; numpy's generator once it is imported.

    Also generators that modules of `follow` keep as globals.
    """
    reseed(seed)
    random.seed(seed)
    if (numpy := sys.modules.get("numpy.random")) is not None:
        numpy.seed(seed & _NUMPY_SEED_MASK)
    for module in _followed:
        for name, value in vars(module).items():
            _reseed_own(name, value)


def follow(module: ModuleType) -> None:
    """From now on generators among this module's globals follow from each draw's seed."""
    _followed.add(module)


def _reseed_own(name: str, value: object) -> None:
    """Seed a value that is a generator; all others stay as they are."""
    numpy = sys.modules.get("numpy.random")
    if isinstance(value, torch.Generator):
        value.manual_seed(drawn_seed(name))
    elif isinstance(value, random.Random) or (numpy and isinstance(value, numpy.RandomState)):
        value.seed(drawn_seed(name))
    elif numpy is not None and isinstance(value, numpy.Generator):
        bits = value.bit_generator
        bits.state = type(bits)(drawn_seed(name)).state


def drawn_seed(own: object = None) -> int:
    """The seed, of 32 bits, that takes the place of one that a task's code sets itself.

    It follows from that one and from what torch's generator was seeded with last.
    """
    return zlib.crc32(f"{torch.initial_seed()} {own!r}".encode())


@functools.cache
def _has_cuda() -> bool:
    return torch.cuda.is_available()
