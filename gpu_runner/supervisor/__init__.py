"""The supervisor holds seeds, clock and verdict; standard library only, never torch.

This is the protocol, top to bottom: `evaluate` does one evaluation, `measuring` its part on the
device, `record` collects facts, and `judge` turns them into numbers and a verdict. The packages
below serve it, and none imports one above it (an import contract gives their order):
`soundness` and `audit`, `tools`, `measure`, `runner`, `oracle`, `build`, `device`, `host`.
"""
