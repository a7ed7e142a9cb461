"""Rewards for other programs' searches: many kernels at once, one number for each."""
