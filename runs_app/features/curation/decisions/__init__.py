"""Admins' decisions on tasks: public, retired, labeled, contaminated.

`many` decides on several tasks at once, with a preview.
"""
