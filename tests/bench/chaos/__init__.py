"""Kills every kind of process of a site at work, and counts what comes of its evaluations.

`victims` finds processes and signals them, `load` submits, `facts` reads the site's rows, and
`counts` says what they prove.
"""
