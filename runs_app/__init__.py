"""Submissions, their evaluations, and runs that look for better kernels.

From the bottom: `models` are the rows. `core` is the life of what runners do, from the queue to
what counts on boards. `submitting` takes kernels and shows what came of them. `optimiser` runs
strategies. `features` can be left out: they join in by the hooks of the core, which names none.
"""
