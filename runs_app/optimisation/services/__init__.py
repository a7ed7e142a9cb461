"""All that changes a run, one job a module.

`request`, `problem`, `estimate` and `start` begin one. `advance` takes a step, `calls` sends one
question.
`history` and `record` go from rows to the optimiser's events and back. `control` and `end` stop it.
`replay` makes each decision again.
"""
