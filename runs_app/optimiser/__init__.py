"""Runs that look for faster kernels, from their start to their last candidate.

`services` writes rows and `evolve` decides; `start` is the form, `compare` sets runs side by side.
A run's own pages are `views`, `page` and `candidate_page`.
"""
