"""Checks that a task is sound: its mutants fail, its honest kernels pass, its filters hold.

`soundness` asks an oracle, and `outcomes` sums up the fate of each mutant.
"""
