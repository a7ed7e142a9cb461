"""Submissions, evaluations, runners and optimisation runs."""
