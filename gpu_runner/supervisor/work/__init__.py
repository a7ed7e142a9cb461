"""Finds out who did a call's work, from where its threads are while it runs.

`onlooker` stops the process at random moments, `mapped` finds the file of an address, and
`attribution` its function, and whose work that is.
"""
