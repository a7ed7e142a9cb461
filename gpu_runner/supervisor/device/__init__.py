"""The device being measured: what it is, its peaks, and whose turn it is.

`device` and `cpu` know peaks, `floor` what they mean for a time, `statistics` how calls become a
time on it; `lock` gives it to one measurement at a time, most urgent first.
"""
