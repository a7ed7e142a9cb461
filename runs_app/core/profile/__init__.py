"""Finds what limits a kernel, judging by its profile and its device; no Django."""
