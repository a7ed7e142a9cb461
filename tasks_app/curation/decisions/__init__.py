"""What admins decide about tasks: public, retired, labelled, contaminated; and what was done.

`many` does it to several tasks at once, with a preview; `trail_words` tells of the past.
"""
