"""The host: what its kernel is asked and told.

Jailed processes with their limits of memory and system calls, the shared memory and sockets between
them, the driver's library, and files of the cache. Nothing here knows a task or a kernel.
"""
