"""The foundation: runner jobs, their queues and outcomes, what counts, and the hooks.

From the bottom: `messaging` talks to runners and sockets. `work` is the life cycle of runner jobs;
`checks` and `baselines` are two kinds of them. `queue` shows what is waiting, `integrity` what
counts, and `runners` handles reports from runners. Features join in through `hooks`, and
`features` lists them.
"""
