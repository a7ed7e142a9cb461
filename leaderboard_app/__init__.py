"""Ranking and its pages; reads, never writes."""
