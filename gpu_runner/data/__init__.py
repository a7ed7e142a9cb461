"""Frozen data types of tasks, solutions, evaluations and events; standard library only.

Also, `protocol` has the figures of a measurement, `wire` the frames between supervisor and
runner, and `codec` the conversion to JSON and back.
"""
