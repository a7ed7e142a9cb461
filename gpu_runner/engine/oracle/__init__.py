"""Holds a task's reference: draws inputs, and later judges outputs."""
