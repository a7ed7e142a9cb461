"""The programs of an installation: started, watched, and stopped together.

`installation` says which they are; `console` makes one log of what all of them print.
"""
