"""Runs that look for faster kernels, from start to last candidate.

`services` writes rows and `evolve` decides; `start` is the form, `compare` shows runs side by side.
A run's own pages are `views`, `page` and `candidate_page`.
"""
