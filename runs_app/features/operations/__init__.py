"""What admins do about the running of the site: stops, runners, queues, and what everybody reads.

`services` changes things, `page` shows them. `glance` says how the site is doing, also to
Prometheus. `emptying` cancels what waits in a queue, `disk` says how full the disk is, `readings`
keeps what sensors said. `hooks` also has what happens by itself.
"""
