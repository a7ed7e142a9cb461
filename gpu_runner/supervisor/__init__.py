"""The supervisor: holds seeds, clock and verdict; standard library only, never torch.

Here is the protocol, top to bottom: `evaluate` does one evaluation, `measuring` what of it happens
on the device, `record` collects facts, `judge` turns them into numbers and a verdict. The rooms
below serve it, and none imports a room above it (an import contract says which is above which):
`soundness` and `audit`, `tools`, `measure`, `runner`, `oracle`, `build`, `device`, `host`.
"""
