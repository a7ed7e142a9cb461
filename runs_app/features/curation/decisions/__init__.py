"""What admins decide about tasks: public, retired, labeled, contaminated.

`many` does it to several tasks at once, with a preview.
"""
