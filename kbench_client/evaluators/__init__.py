"""Evaluators for other programs' searches: they write kernels, and the site says how good."""
