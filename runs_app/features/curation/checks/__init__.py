"""Drafts are checked and their kernels tried, many tasks at once, too; and what came of it."""
