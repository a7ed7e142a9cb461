"""The optimiser: what a run does next, decided from its history alone.

Nothing here knows a database, a socket or a clock. `optimizer` takes one step, `strategies` are the
plans, `history` folds `events`, `commands` are what a strategy gives. `replay` decides all again.
"""
