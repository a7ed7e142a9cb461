"""The process that knows the task: it describes, draws inputs, and afterwards verifies.

`client` talks to one, `pool` lends one that was started ahead, `distributions` asks it which other
input values are fair.
"""
