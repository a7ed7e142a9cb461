"""Memory of a CUDA device that two processes map, through the driver's virtual memory functions."""

from __future__ import annotations

import ctypes
import functools

import torch
from torch import Tensor

_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY in cuda.h
_PINNED, _DEVICE, _POSIX_FD, _READ_WRITE = 1, 1, 1, 3  # cuda.h


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Flags(ctypes.Structure):
    _fields_ = (
        ("compression", ctypes.c_ubyte),
        ("rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    )


class _Properties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("windows", ctypes.c_void_p),
        ("flags", _Flags),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class DeviceMemoryError(Exception):
    """The driver refuses; the text names the function and its status."""


def create(nbytes: int) -> tuple[Tensor, int]:
    """At least so many bytes as a uint8 tensor, and a descriptor by which others can map them.

    Raises `torch.OutOfMemoryError` and `DeviceMemoryError`.
    """
    properties = _Properties(
        type=_PINNED, handle_types=_POSIX_FD, location=_Location(_DEVICE, _device())
    )
    granularity = ctypes.c_size_t()
    _call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(properties), 0)
    step = granularity.value
    size = max(-(-nbytes // step), 1) * step
    handle = ctypes.c_ulonglong()
    _call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(properties), 0)
    descriptor = ctypes.c_int()
    _call(
        "cuMemExportToShareableHandle",
        ctypes.byref(descriptor),
        handle,
        _POSIX_FD,
        ctypes.c_ulonglong(0),
    )
    return _mapped(handle, size), descriptor.value


def import_(descriptor: int, nbytes: int) -> Tensor:
    """The memory that `create` made in another process, as a uint8 tensor."""
    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    handle = ctypes.c_ulonglong()
    _call(
        "cuMemImportFromShareableHandle",
        ctypes.byref(handle),
        ctypes.c_void_p(descriptor),
        _POSIX_FD,
    )
    return _mapped(handle, nbytes)


def _mapped(handle: ctypes.c_ulonglong, size: int) -> Tensor:
    address = ctypes.c_ulonglong()
    nbytes = ctypes.c_size_t(size)
    nothing = ctypes.c_size_t(0), ctypes.c_ulonglong(0), ctypes.c_ulonglong(0)
    _call("cuMemAddressReserve", ctypes.byref(address), nbytes, *nothing)
    _call("cuMemMap", address, nbytes, ctypes.c_size_t(0), handle, ctypes.c_ulonglong(0))
    access = _Access(_Location(_DEVICE, _device()), _READ_WRITE)
    _call("cuMemSetAccess", address, nbytes, ctypes.byref(access), ctypes.c_size_t(1))
    return torch.as_tensor(_Bytes(address.value, size), device="cuda")


class _Bytes:
    """Tells PyTorch of memory that it has not allocated."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def _device() -> int:
    return int(torch.cuda.current_device())


def _call(name: str, *arguments: object) -> None:
    status = getattr(_driver(), name)(*arguments)
    if status == _OUT_OF_MEMORY:
        raise torch.OutOfMemoryError(f"{name} found no memory left on the device")
    if status != 0:
        raise DeviceMemoryError(f"{name} failed with CUresult {status}")


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
