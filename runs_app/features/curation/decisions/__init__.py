"""What admins decide about tasks: public, retired, labelled, contaminated.

`many` does it to several tasks at once, with a preview.
"""
