"""How admins run the site: stopping work, runners, queues, and announcements.

`services` changes things, `page` shows them. `glance` says how the site is doing, also to
Prometheus. `emptying` cancels the jobs in a queue, `disk` says how full the disk is, and
`readings` keeps sensor readings. `hooks` also has everything that happens on its own.
"""
