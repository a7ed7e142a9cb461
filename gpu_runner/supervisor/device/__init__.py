"""The device that is measured: what it is, what it can do at most, and whose turn it is.

`device` and `cpu` know peaks, `floor` what they mean for a time, `statistics` how calls become a
time on it; `lock` gives it to one measurement at a time, the more urgent first.
"""
