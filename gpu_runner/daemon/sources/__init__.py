"""Where a runner's jobs come from and its events go: Redis, HTTPS, or a folder.

`contract` says what each of them does. A process that was forked opens one of its own.
"""
