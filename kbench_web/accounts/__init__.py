"""Accounts: signing in, signing up, and tokens."""
