"""Checks of task versions by runners: asked for, queued, and ended with a soundness report."""
