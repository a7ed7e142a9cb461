"""A module of vector_add that does what everyday Python does beside its work."""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import glob
import json
import logging
import mmap
import multiprocessing
import os
import pickle
import platform
import random
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

ABOUT = (platform.platform(), os.cpu_count(), len(os.sched_getaffinity(0)), os.getloadavg())
POOL = ThreadPoolExecutor(4)


def keep(folder: Path) -> None:
    """Write, lock, map, copy and remove files."""
    path = folder / "table.npy"
    np.save(path, np.arange(8))
    np.load(path, mmap_mode="r").sum()
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.lockf(file, fcntl.LOCK_SH)
        mmap.mmap(file.fileno(), 0).flush()
        os.set_inheritable(file.fileno(), False)
        os.isatty(file.fileno())
        os.fsync(file.fileno())
    shutil.copytree(folder, folder.with_suffix(".copy"))
    os.replace(path, folder / "moved.npy")
    os.utime(folder / "moved.npy")
    os.chmod(folder, 0o700)
    os.symlink("moved.npy", folder / "link")
    glob.glob(f"{folder}/*")
    torch.save(torch.ones(3), folder / "ones.pt")
    torch.load(folder / "ones.pt", weights_only=True)
    shutil.rmtree(folder.with_suffix(".copy"))


def everyday() -> None:
    """All else that a program does without thinking about it."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as file:
        file.write(pickle.dumps(json.dumps({"id": str(uuid.uuid4())})))
        keep(Path(folder))
    selector = selectors.DefaultSelector()
    ends = os.pipe()
    selector.register(ends[0], selectors.EVENT_READ)
    os.write(ends[1], b"x")
    selector.select(1)
    selector.close()
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.raise_signal(signal.SIGUSR1)
    faulthandler.enable()
    resource.getrusage(resource.RUSAGE_SELF)
    resource.getrlimit(resource.RLIMIT_NOFILE)
    ctypes.CDLL(None).getpid()
    shutil.get_terminal_size()
    multiprocessing.current_process()
    logging.getLogger(__name__).warning("%s", ABOUT)
    time.sleep(1e-4)
    random.seed()
    event = threading.Event()
    threading.Thread(target=event.set).start()
    event.wait()
    sys.stdout.flush()


everyday()


def forward(A, B, N):
    everyday()
    out = torch.empty_like(A)
    parts = [slice(at, at + 4096) for at in range(0, N, 4096)]
    list(POOL.map(lambda part: torch.add(A[part], B[part], out=out[part]), parts))
    return out
