"""Tasks: what kernels are written for, their versions, and how they come to be public.

`formats` reads and writes folders, `publishing` makes versions public, `pages` says what is
shown of them, `disclosure` decides what leaks.
"""
