"""Work that takes a known time, for modules that lie about it."""

from __future__ import annotations

import time
import zlib

import torch

true_thread_ns, true_ns = time.thread_time_ns, time.perf_counter_ns
_CHUNK = bytes(1 << 15)


def busy(ns):
    """Needs so much of a processor's time, and lets go of the interpreter meanwhile."""
    until = true_thread_ns() + ns
    while true_thread_ns() < until:
        zlib.crc32(_CHUNK)


def add(A, B, ns=2_000_000, out=None):
    """The honest work: a sum, done slowly, so that there is a time to lie about."""
    busy(ns)
    return torch.add(A, B, out=torch.empty_like(A) if out is None else out)
