"""Tests whether a task is sound, with honest kernels, mutants, other values and arithmetic."""
