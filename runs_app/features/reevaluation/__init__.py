"""The best kernels of a version are measured again: previewed, queued, compared.

`plan` says what would be done, `services` does it, `progress` tells how far it is.
"""
