"""Evaluators for other programs' searches: these write kernels, and the site scores them."""
