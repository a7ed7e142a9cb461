"""A runner's connection to a site, for its jobs and events: Redis, HTTPS, or a folder.

`contract` says what each of them does. A forked process opens its own.
"""
