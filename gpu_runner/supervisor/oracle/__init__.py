"""The process that knows the task: it describes, draws inputs, and afterwards verifies.

`client` talks to one, `distributions` asks it which other input values are fair, `shapes` which
other sizes work. `varied` gives an imported file further workloads: `sizes` has it run with others,
and `further` chooses them.
"""
