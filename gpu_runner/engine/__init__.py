"""Jailed code that uses torch: the oracle, the torch runner, the comparison of outputs."""
