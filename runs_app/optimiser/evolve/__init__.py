"""The optimizer, which decides what a run does next from its history alone.

Nothing here knows a database, a socket or a clock. `optimizer` takes one step, `strategies` are the
plans, `history` folds `events`, and a strategy returns `commands`. `replay` repeats all decisions.
"""
