"""The programs of an installation: started, watched, and stopped together.

`installation` says which they are; `supervision` runs them.
"""
