"""Everything that changes a run, one action per module.

`request`, `problem`, `estimate`, `spending` and `start` begin a run. `advance` takes a step,
`calls` sends one prompt. `history` and `record` convert rows to the optimizer's events and back,
and `log` stores them. `control` and `end` stop a run. `enter` puts a candidate on the board,
and `replay` repeats each decision.
"""
