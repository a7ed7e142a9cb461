"""Challenges: whole agents compete on fixed tasks, each with a budget and a token of its own.

An entry is the bearer of its token, and `hooks` says what the token may do. `settle` takes all
steps that time brings; each tick calls it. `services` makes challenges and enters them, and
`figures` says what came of it. `attempts` are submissions of entries, counted on their budgets.
"""
