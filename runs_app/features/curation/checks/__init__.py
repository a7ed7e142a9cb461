"""Checks of drafts and dry runs of their kernels, also for many tasks at once, with the results."""
