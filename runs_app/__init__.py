"""Submissions, their evaluations, and runs that look for better kernels.

From the bottom: `models` are the rows; `evolve` decides what a run does next, and is pure; `llm`
calls one endpoint; `messaging` is the two doors to runners and the sockets. `work` is the life of
what runners do; `checks` and `baselines` are two kinds of it. `queue` says what waits, `integrity`
what counts, `submissions` takes kernels, `optimisation` runs strategies. `verifiers` and `advice`
ask language models about kernels and tasks. `runners` hears what runners report.
"""
