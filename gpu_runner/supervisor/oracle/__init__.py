"""The process that knows the task: it describes, draws inputs, and later verifies.

`client` talks to one, `distributions` asks it which other input values are fair, `shapes` which
other sizes work. `varied` gives an imported file more workloads: `sizes` runs it with other sizes,
and `further` chooses some.
"""
