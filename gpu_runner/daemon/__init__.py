"""Takes jobs from Redis, runs each in a process of its own, and sends events.

`work` is the daemon, `slots` keeps its processes, and `jobs` is what one of them does. `events` go
to the site, `heartbeat` says how the daemon is, `fitness` keeps it off a broken device.
"""
