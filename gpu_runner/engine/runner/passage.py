"""The runner's side of the gate that calls pass (native/gate.h), and of taking the inputs."""

from __future__ import annotations

import ctypes
import mmap
import os
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.wire import POCKET_BYTES, ArgumentKind, Call

# Inputs are read-only on purpose. PyTorch would warn that a tensor could still be written to.
warnings.filterwarnings("ignore", message="The given buffer is not writable")

_PAGE = mmap.PAGESIZE
_READ = (ArgumentKind.INPUT, ArgumentKind.INOUT)


class Coming(ctypes.Structure):
    """What to map when the gate opens (`KbComing`); nothing if it has no values."""

    _fields_ = (
        ("handles", ctypes.c_int64),
        ("at", ctypes.c_void_p),
        ("own", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("ranges", ctypes.POINTER(ctypes.c_uint64)),
        ("shared", ctypes.c_size_t),
        ("owned", ctypes.c_size_t),
    )


class _Tensors(ctypes.Structure):
    """How the library finds the memory in what a call returns (`KbTensors`)."""

    _fields_ = tuple((name, ctypes.py_object) for name in ("tensor", "parameter", "address"))


Meanwhile = Callable[[], object]


class Passage:
    """A page that the supervisor maps, too: it opens the gate, and sees when a call is over.

    The supervisor stops the whole process for a while at the gate. So `meanwhile` is called there
    again and again: whatever is warm in a loop is then warm for the call, too.
    """

    def __init__(self, support: Path, descriptor: int) -> None:
        """Map the page; `support` is the library of native/call.h. Raises `OSError`."""
        library = ctypes.PyDLL(str(support))  # keeps the GIL: no other Python runs in between
        self._page = mmap.mmap(descriptor, _PAGE)
        self._here = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(self._page)))
        self._tensors = _Tensors(Tensor, torch.nn.Parameter, Tensor.data_ptr)
        self._wait, self._pass = library.kb_gate_wait, library.kb_gate_pass
        self._pass.restype = ctypes.py_object
        self._leave, self._rehearse = library.kb_gate_told, library.kb_rehearse_outputs
        self._leave.restype = self._rehearse.restype = None

    def wait(self, number: int, coming: Coming, meanwhile: Meanwhile) -> None:
        """Stand at the gate until it opens for the call or burst with this number.

        Raises `OSError` if the inputs do not come.
        """
        word, come = ctypes.c_uint64(number), ctypes.byref(coming)
        _check(self._wait(self._here, word, come, ctypes.py_object(meanwhile)))

    def leave(self, number: int, result: object) -> None:
        """Say where the outputs in a result are, and that the call is over."""
        told = ctypes.byref(self._tensors), ctypes.py_object(result)
        self._leave(self._here, ctypes.c_uint64(number), *told)

    def call(
        self,
        number: int,
        coming: Coming,
        meanwhile: Meanwhile,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> tuple[Any, int]:
        """Wait, call and leave without any Python in between; the result, and the call's ns.

        Raises what `wait` and the function raise.
        """
        time_ns, status = ctypes.c_uint64(0), ctypes.c_int(0)
        result = self._pass(
            self._here,
            ctypes.c_uint64(number),
            ctypes.byref(coming),
            ctypes.py_object(meanwhile),
            ctypes.byref(self._tensors),
            ctypes.py_object(function),
            ctypes.py_object(arguments),
            ctypes.byref(time_ns),
            ctypes.byref(status),
        )
        _check(status.value)
        return result, time_ns.value

    def rehearse(self, result: object) -> None:
        """Say where outputs are, only to keep that warm: nobody reads it before a call is over."""
        self._rehearse(self._here, ctypes.py_object(result), ctypes.byref(self._tensors))


class HandedInputs:
    """A place for a call's inputs on a CPU, which come when the gate opens.

    Tensors can be made there earlier. Small inputs are copied into a pocket, which holds nothing of
    them until then. Large inputs are mapped; a signal ends a process that reads there earlier.
    """

    def __init__(self, support: Path, handles: int, size: int, pocket: int) -> None:
        """Reserve a pocket and `size` bytes, both twice.

        `support` is the library with `kb_reserve`, `pocket` the pocket's file. Raises `OSError`.
        """
        library = ctypes.PyDLL(str(support))
        self._reserve = library.kb_reserve
        self._handles, self._mapped = handles, (0, 0)
        size = POCKET_BYTES + -(-size // _PAGE) * _PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        maps = [mmap.mmap(-1, size, flags, mmap.PROT_READ) for _ in range(2)]
        self._whole, self._own = (torch.frombuffer(each, dtype=torch.uint8) for each in maps)
        for place, writable in ((self._whole, 0), (self._own, 1)):
            at, length = ctypes.c_void_p(place.data_ptr()), ctypes.c_size_t(POCKET_BYTES)
            _check(library.kb_map(at, ctypes.c_int(pocket), length, ctypes.c_int(writable)))

    def of(self, call: Call, *, own: bool = False) -> Tensor:
        """Where the inputs of a call will be; own: the copy that may be written to."""
        first = call.inputs_low // _PAGE * _PAGE
        base = 0 if call.is_pocketed else POCKET_BYTES + first
        low, high = (base + at - first for at in (call.inputs_low, call.inputs_high))
        if not 0 <= low <= high <= self._whole.numel():
            raise ValueError(f"bad range of the inputs: {low} to {high}")
        return (self._own if own else self._whole)[low:high]

    def whole(self) -> Tensor:
        """All of them."""
        return self._whole

    def let_go(self) -> None:
        """Give the memory of the last call back. Raises `OSError`."""
        first, end = self._mapped
        self._mapped = (0, 0)
        for base in (self._whole.data_ptr(), self._own.data_ptr()) if end > first else ():
            size = ctypes.c_size_t(end - first)
            _check(self._reserve(ctypes.c_void_p(base + first), size))

    def coming(self, call: Call, owned: Collection[int] = ()) -> Coming:
        """What to map for a call when the gate opens.

        owned: numbers of the inputs of which the call gets the copy that it may write to.
        """
        if call.is_pocketed:
            return Coming()
        first, end = call.inputs_low // _PAGE * _PAGE, -(-call.inputs_high // _PAGE) * _PAGE
        self._mapped = POCKET_BYTES + first, POCKET_BYTES + end
        read = [a for a in call.arguments if a.kind in _READ]
        pairs = [(a.input_offset - first, a.input_offset - first + a.nbytes) for a in read]
        shared = [pair for index, pair in enumerate(pairs) if index not in owned]
        own = [pair for index, pair in enumerate(pairs) if index in owned]
        words = [word for pair in shared + own for word in pair]
        return Coming(
            handles=self._handles,
            at=self._whole.data_ptr() + self._mapped[0],
            own=self._own.data_ptr() + self._mapped[0] if own else None,
            size=end - first,
            ranges=(ctypes.c_uint64 * len(words))(*words),
            shared=len(shared),
            owned=len(own),
        )


def _check(status: int) -> None:
    if status != 0:
        raise OSError(status, os.strerror(status))


_NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux, which Python does not name
