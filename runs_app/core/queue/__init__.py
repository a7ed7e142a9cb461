"""Each device's queue: what is waiting, why, how long; available runners and compilers.

`selectors` finds waiting jobs, `devices` and `runners` show who could take them. `selectors` also
finds the device that a request means, and `many` its tasks.
"""
