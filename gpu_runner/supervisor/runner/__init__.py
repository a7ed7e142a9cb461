"""The process that runs a submission; nothing that it says is believed.

`runner_process` starts it, `session` hands it calls, `freeze` stops it between them, and `gate`
watches a call on a CPU. `preemption` gives the device away to somebody more urgent.
"""
