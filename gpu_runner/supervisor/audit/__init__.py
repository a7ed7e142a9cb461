"""Tools over a submission that was found right: sanitizers, race detectors, kernel lists.

`audit` makes the checks, `required` says which a place on a board needs.
"""
