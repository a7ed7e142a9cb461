"""Starts, watches and stops an installation's programs together.

`installation` says which they are; `supervision` runs them.
"""
