# row: 6, 38, 43, 44
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: construction
# must not print: GOT
# tries: to find the task's workloads, reference and tolerances among the files that it can read.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os

from tests.adversarial.common.inside import module

NAMES = {"task.toml", "catalog_soundness", "tasks_app"}


def search():
    for folder, folders, files in os.walk("/"):
        if folder in ("/proc", "/sys", "/dev"):
            folders.clear()
        for name in NAMES & {*folders, *files}:
            print("GOT", os.path.join(folder, name), flush=True)


if module("gpu_runner.engine.runner.runner"):
    search()


def forward(A, B, N):
    return A + B
