"""Checks of task versions by runners: asked for, queued, and ended with a soundness report.

The pages that ask are `tasks_app.curation.checks` and `tasks_app.curation.bulk`.
"""
