"""All that changes a run, one job a module.

`request`, `problem`, `estimate`, `spending` and `start` begin one. `advance` takes a step, `calls`
sends one question. `history` and `record` go from rows to the optimiser's events and back, `log`
stores them. `control` and `end` stop it. `enter` puts a candidate on the board, and `replay` makes
each decision again.
"""
