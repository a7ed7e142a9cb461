"""Frozen data types of tasks, solutions, evaluations and events; standard library only."""
