"""Tools run on a correct submission: sanitizers, race detectors, kernel lists.

`audit` runs the checks, and `required` says which ones a place on a board needs.
"""
