"""What we ask the host's operating system to do: jails, shared memory, sockets.

Jailed processes with their limits on memory and system calls, the shared memory and sockets between
them, the driver's library, and files of the cache. Nothing here knows a task or a kernel.
"""
