"""Frozen data types of tasks, solutions, evaluations and events; standard library only.

Beside them: `protocol` has the figures of a measurement, `wire` the frames between supervisor and
runner, `codec` the way to JSON and back.
"""
