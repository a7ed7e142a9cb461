"""The process that runs a submission; we believe nothing that it says.

`runner_process` starts it, `session` hands it calls and judges its answers, `freeze` stops it
between them, and `gate` watches a call on a CPU. `preemption` gives the device to a more urgent
job. `gpu_runner.data.wire` unpacks the frames and refuses what is malformed; the other
end is `native/runner.cpp` or, for torch, `engine.torch_runner`.
"""
