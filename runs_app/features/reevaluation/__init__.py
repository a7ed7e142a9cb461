"""Measures a version's best kernels again: preview, queue, comparison.

`plan` is the preview, `services` carries it out, and `progress` shows how far it is.
"""
