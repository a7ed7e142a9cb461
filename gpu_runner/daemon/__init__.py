"""Takes jobs from a site, runs each in its own process, and reports on it.

`work` is the daemon, `slots` keeps its processes, `slot` is one of them, and its work-horses do
`jobs`. `sources` are the ways to a site. `events` keeps events that aren't sent yet.
"""
