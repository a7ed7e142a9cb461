"""Challenges: whole agents compete on fixed tasks, each with its own budget and token.

An entry is the bearer of its token, and `hooks` says what the token may do. Each tick calls
`settle`, which takes every step that is due. `services` creates challenges and entries, and
`figures` shows the results. `attempts` are submissions of entries, counted on their budgets.
"""
