"""Runs and settings side by side: curves, tables, and ablations."""
