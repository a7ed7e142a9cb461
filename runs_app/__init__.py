"""Submissions, their evaluations, and runs that look for better kernels.

From the bottom: `models` are the rows. `core` follows runner jobs from the queue to the boards.
`submitting` takes kernels and shows their results. `optimiser` runs strategies. `features` can be
left out: they join in through the hooks of the core, which names none of them.
"""
