"""Queries about runs, their settings, spending, and language models."""
