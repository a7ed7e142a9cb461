"""Takes jobs from a site, runs each in a process of its own, and reports on it.

`work` is the daemon, `slots` keeps its processes, `slot` is one of them, and `jobs` is what its
work-horses do. `sources` are the ways to a site. `events` keeps what is not sent yet.
"""
