"""Read a small tensor from a safetensors file as plain numbers, without torch.

Source of the format: the safetensors README. Eight bytes hold the header's length, the header is a
JSON object of dtype, shape and data_offsets by key, and the elements follow, little-endian.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import BinaryIO

from gpu_runner.data.codec import DataError

ELEMENTS_LIMIT = 1 << 16  # chosen: offsets and page numbers of a batch, not its activations
_HEADER_LIMIT = 1 << 22  # chosen: thousands of tensors' entries
_CODES = {
    **{"I64": ("int64", "q"), "I32": ("int32", "i"), "I16": ("int16", "h"), "I8": ("int8", "b")},
    **{"U8": ("uint8", "B"), "BOOL": ("bool", "?"), "F32": ("float32", "f")},
    "F64": ("float64", "d"),
}
"""The file's name of a dtype: torch's name, and that of `struct`."""


def read_tensor(path: Path, key: str, field: str) -> tuple[str, list[int], list[int | float]]:
    """A tensor's dtype by torch's name, its shape, and its elements in row-major order.

    Raises `DataError` (`field`) if there is no such tensor, or it is no small one of plain numbers.
    """
    try:
        with path.open("rb") as file:
            dtype, shape, numbers = _read(file, key, field)
    except DataError:
        raise
    except OSError:
        raise DataError(field, "is in a file that isn't here; get the data set's blob/") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error):
        raise DataError(field, "is in no safetensors file (a pointer of Git LFS?)") from None
    if not all(map(math.isfinite, numbers)):
        raise DataError(field, "holds numbers that are not finite")
    return dtype, shape, numbers


def _read(file: BinaryIO, key: str, field: str) -> tuple[str, list[int], list[int | float]]:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > _HEADER_LIMIT:
        raise ValueError
    entry = json.loads(file.read(length)).get(key)
    if entry is None:
        raise DataError(field, f"has no tensor {key!r} in its file")
    if entry["dtype"] not in _CODES:
        raise DataError(field, f"is of {entry['dtype']}; {', '.join(_CODES)} can be kept")
    dtype, code = _CODES[entry["dtype"]]
    shape = [int(size) for size in entry["shape"]]
    count = math.prod(shape)
    if not 0 <= count <= ELEMENTS_LIMIT:
        raise DataError(field, f"has more than {ELEMENTS_LIMIT} elements to keep in a task")
    file.seek(8 + length + int(entry["data_offsets"][0]))
    layout = f"<{count}{code}"
    return dtype, shape, list(struct.unpack(layout, file.read(struct.calcsize(layout))))
