# row: 46, 14
# task: softmax
# workloads: cpu_n64_c1024
# stopped by: quarantine work
# tries: to have the framework's compiler keep what it makes in another compiler's folder, where it
#   looks like the kernel's own.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os

import torch
from torch.utils.cpp_extension import load_inline

os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ["CUTE_DSL_CACHE_DIR"]


def unused():
    return load_inline("decoy", "")


whole = getattr(torch, "com" + "pile")(lambda x: x.softmax(1), dynamic=False)


def forward(input, N, C):
    return whole(input.view(N, C)).view(input.shape)
