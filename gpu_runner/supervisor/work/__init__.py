"""Who did the work of a call: seen from outside, by where its threads are while it runs.

`onlooker` stops the process at chance moments, `mapped` says in which file an address is, and
`attribution` which function is there, and whose work that is.
"""
