"""What waits on each device, why, and how long; which runners and compilers there are.

`selectors` says what waits, `devices` and `runners` who could take it. It also finds the
device that a request means, and `many` its tasks.
"""
