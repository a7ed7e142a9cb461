"""Measures one process after another: every call is both a correctness and a timing call.

`bench` is the loop. `turns` says whose call is next, `collected` how many come, `burst_sizes` how
many go together; `staging` and `device_memory` where their tensors lie. `sampled_outputs` keeps
outputs for `verification`; `outside` and `empty_kernel` are the supervisor's own clock.
"""
