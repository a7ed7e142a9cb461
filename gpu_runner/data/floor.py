"""The tuned numbers of the physical limit, each with its reason and its source.

See `protocol`, which has those of measuring and judging.
"""

from __future__ import annotations

SAVED = 4.0
"""Direct operations for one of a cleverer algorithm: Winograd's F(4x4, 3x3) needs a quarter.

Source: Lavin and Gray, Fast algorithms for convolutional neural networks, 2016.
"""

SAVED_IN_PARTS = 4 / 3
"""The same for arithmetic in parts: Strassen twice; nobody adds Winograd to that.

Source: Strassen's seven products instead of eight, twice, are 64 / 49, which is below this.
"""

PARTS = {"float32": 3, "float64": 10}
"""Products in 16 bits that give one of the dtype's precision, on tensor cores.

Source: Ootomo and Yokota, Recovering single precision accuracy from tensor cores, 2022; of float64
judgement.
"""

RESIDUE = 0.14
"""Part of the inputs that a flush may leave in a cache which evicts at random: e to the -2.

Source: a flush writes twice the cache's size, and each line evicts another one by chance.
"""

FLOOR_RESOLUTION_NS = 1000.0
"""Of a pair of events in ns, whose mean cost is subtracted from a time. Source: judgement."""

IMPOSSIBLE_BYTES = 0.5
"""A time below this part of the floor's bytes is no honest one. Source: judgement."""

IMPOSSIBLE_RATE = 1.25
"""Nor is one above this part of the possible rate. Source: judgement."""

CPU_HEADROOM = 4.0
"""A CPU's memory is taken to be at most this many times as fast as it was measured to be.

Nothing on a host says how fast its memory is, and a measurement may have met busy neighbours.
Source: judgement.
"""

CPU_LEAST_BYTES_PER_S = 1e11
"""And never to be slower than this, about two channels of DDR5, however busy the host was.

Source: 2 x 8 bytes x 6.4e9 a second.
"""
