"""People: signing in, signing up, their tokens."""
