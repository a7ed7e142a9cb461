"""Compares submissions, agents, language models, runs or settings side by side."""
