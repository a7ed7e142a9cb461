"""The tuned numbers by which a task is proven sound, each with its reason and its source.

See `protocol`, which has those of measuring and judging.
"""

from __future__ import annotations

MUTANT_SEEDS = 3
"""Calls on which every mutant is tried on a workload, at least. Source: judgement."""

MOST_MUTANT_SEEDS = 12
"""Calls on which one is tried whose outcome depends on luck. Source: judgement."""

MUTANT_LUCK = 1e-3
"""A mutant fails if it would pass a ranked evaluation with less than this probability.

Source: judgement.
"""

FILTER_SEEDS = 5
"""Draws on which a task's filters look. Source: judgement."""

FILTER_SHARE = 0.9
"""Share of an output's elements that zeros, another draw or a neighbour may pass for.

Source: judgement.
"""

BYTES_RATIO = (0.3, 1.02)
"""The formula's bytes over those of a call's inputs and outputs; some inputs need not be read.

Source: judgement; two per cent are rounding, and what is too small to be written down.
"""

FLOPS_RATIO = (0.2, 2.5)
"""The formula's FLOPs over those that are counted in the reference.

That may compute what a kernel need not: padding, or what a mask hides. Source: judgement.
"""
