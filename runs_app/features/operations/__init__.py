"""What admins do about the running of the site: stops, runners, queues, and what everybody reads.

`services` changes things, `page` shows them. `emptying` cancels what waits in a queue, `disk` says
how full the disk is, `readings` keeps what sensors said, `statistics` what SQLite knows of its
tables. `upkeep` is what happens by itself.
"""
