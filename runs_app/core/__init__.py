"""What all else stands on: jobs of runners, their queues and ends, what counts, and the hooks.

From the bottom: `messaging` is the two doors to runners and the sockets. `work` is the life of what
runners do; `checks` and `baselines` are two kinds of it. `queue` says what waits, `integrity` what
counts, and `runners` hears what runners report. `hooks` is where features join in, and `features`
says which there are.
"""
