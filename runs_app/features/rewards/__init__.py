"""Rewards for other programs' searches: many kernels at once, and one number for each."""
