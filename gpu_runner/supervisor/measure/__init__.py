"""One measured process after another: every call is a correctness call and a timing call.

`bench` is the loop. `plan` says how many calls, `burst_sizes` how many go together, `staging` and
`device_memory` where their tensors lie. `sampled_outputs` keeps outputs for `verification`;
`outside` and `empty_kernel` are the supervisor's own clock.
"""
