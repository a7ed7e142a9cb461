"""The fixed binary frames between the supervisor and a runner process.

A frame is a header (magic, kind, body length) and a body. The supervisor's frames may carry JSON,
because it is trusted; a runner's frames are fixed binary records and bounded text, because a
submission shares its process. `gpu_runner/native/wire.h` is the same in C++.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

MAGIC = 0x4B42_4331  # "1CBK" in memory
HEADER = struct.Struct("<IIQ")  # magic, kind, body length
CALL_HEAD = struct.Struct("<QIIQQQQ")
# call id, arguments, index of the SETUP, inputs low, high, outputs low, high
BURST_HEAD = struct.Struct("<QII")  # id of the burst, calls, 0; the calls' bodies follow
COPY_BODY = struct.Struct("<Q")  # id of the call or burst whose outputs are meant
ARGUMENT = struct.Struct("<IIQQQQ")  # kind, 0, bytes, offset in inputs, offset in outputs, value
READY_BODY = struct.Struct("<d")  # overhead of an empty measurement, already subtracted, in ns
DONE_HEAD = struct.Struct("<QdII")
# id of the call or burst, time in ns, number of output records, host time in ns
HOST_LIMIT_NS = 2**32 - 1
SHORTEST_NS = 1.0  # runners say at least this, whatever the overhead was
OUTPUT_RECORD = struct.Struct("<II8q8qQQ")  # dtype, dimensions, shape, strides, bytes, address
ERROR_HEAD = struct.Struct("<I")  # ErrorCode; bounded UTF-8 text follows
TEXT_LIMIT = 4096
BODY_LIMIT = 64 * 1024
MAX_DIMENSIONS = 8
MAX_OUTPUTS = 64

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int32", "int64",
    "int8", "uint8", "int16", "bool", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
"""Names of dtypes; the position is the code on the wire. 255 stands for any other."""
OTHER_DTYPE = 255  # the largest byte
POCKET_BYTES = 2 << 20  # chosen: has room for guard bands, too
_LARGEST_PAGE = 64 << 10  # the largest that Linux uses anywhere
_POCKETED_BYTES = 128 << 10  # chosen: copied in 6 us, the most that a kernel can gain by it


class Command(IntEnum):
    """Kinds of frame that the supervisor sends."""

    SETUP = 1  # JSON; only to the torch runner
    CALL = 2
    END = 3
    BURST = 4  # several calls that are answered together
    COPY = 5  # copy the last outputs to their places; only to the torch runner, on a device
    REPEAT = 6  # one call many times, untimed
    GRAPH = 7  # record one call as a CUDA graph; the next time, launch that
    SCRATCH = 8  # how many bytes of a device the process has taken at most since this was asked


class Reply(IntEnum):
    """Kinds of frame that a runner sends."""

    READY = 1  # after start and each SETUP; after SCRATCH with the bytes
    DONE = 2
    ERROR = 3


class ErrorCode(IntEnum):
    """Why a runner gave up. It is the runner's word: it can never turn into CORRECT."""

    EXCEPTION = 1
    MEMORY = 2
    DEVICE = 3  # a CUDA error; the text holds its name
    SIGNAL = 4
    SYMBOL = 5  # the library does not load, or lacks the symbol
    INPUT_WRITE = 6  # wrote to a read-only input
    SHAPE = 7  # returned something that is no tensor, or too many of them
    INPUT_RETURNED = 8  # returned memory of an input


class ArgumentKind(IntEnum):
    """What an argument of a CALL is."""

    VALUE = 0
    INPUT = 1
    OUTPUT = 2
    INOUT = 3


class WireError(Exception):
    """A runner's bytes are not what the protocol allows: missing, extra, or out of range."""


@dataclass(frozen=True)
class Argument:
    """One argument of a call; offsets are in bytes from the start of each arena."""

    kind: ArgumentKind
    nbytes: int = 0
    input_offset: int = 0
    output_offset: int = 0
    value: int = 0  # the scalar's bits, zero-extended


@dataclass(frozen=True)
class Call:
    """A call: its arguments, and the ranges of the arenas (guards included) that it may touch.

    `setup` counts the torch runner's SETUP frames from 0; the C++ runner has none.
    """

    call_id: int
    arguments: tuple[Argument, ...]
    inputs_low: int
    inputs_high: int
    outputs_low: int
    outputs_high: int
    setup: int = 0

    @property
    def is_pocketed(self) -> bool:
        """Whether its inputs are so small that a process on a CPU gets them in its pocket.

        The pocket is memory that the process mapped earlier. The inputs are copied there when the
        call begins.
        """
        kinds = (ArgumentKind.INPUT, ArgumentKind.INOUT)
        nbytes = sum(a.nbytes for a in self.arguments if a.kind in kinds)
        is_near = self.inputs_high - self.inputs_low < POCKET_BYTES - _LARGEST_PAGE
        return nbytes <= _POCKETED_BYTES and is_near


@dataclass(frozen=True)
class OutputRecord:
    """An output as the torch runner describes it.

    Strides are in elements. address: of its first byte in the runner's own memory, where the
    supervisor reads it; 0 on a device, whose outputs the runner copies.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    nbytes: int
    address: int = 0


@dataclass(frozen=True)
class Done:
    """Acknowledgement of a call, or of a burst. Empty `outputs` for the c ABI.

    host_ns: how long the host took to queue the call on a device, at most `HOST_LIMIT_NS`; 0 where
    that is the call itself.
    """

    call_id: int
    time_ns: float
    outputs: tuple[OutputRecord, ...]
    host_ns: int = 0


@dataclass(frozen=True)
class Failed:
    """The runner gave up."""

    code: ErrorCode
    text: str


Read = Callable[[int], bytes]
"""Reads exactly n bytes; raises EOFError if the stream ends before."""


def frame(kind: Command | Reply, body: bytes = b"") -> bytes:
    return HEADER.pack(MAGIC, kind, len(body)) + body


def read_frame(read: Read, limit: int = BODY_LIMIT) -> tuple[int, bytes]:
    """Next frame as (kind, body). Raises `WireError` on a bad header or a body over `limit`."""
    magic, kind, length = HEADER.unpack(read(HEADER.size))
    if magic != MAGIC or length > limit:
        raise WireError("bad frame header")
    return kind, read(length)


def pack_call(call: Call) -> bytes:
    head = CALL_HEAD.pack(
        call.call_id,
        len(call.arguments),
        call.setup,
        call.inputs_low,
        call.inputs_high,
        call.outputs_low,
        call.outputs_high,
    )
    return head + b"".join(
        ARGUMENT.pack(a.kind, 0, a.nbytes, a.input_offset, a.output_offset, a.value)
        for a in call.arguments
    )


def pack_burst(burst_id: int, calls: Sequence[Call]) -> bytes:
    return BURST_HEAD.pack(burst_id, len(calls), 0) + b"".join(map(pack_call, calls))


def pack_repeat(number: int, times: int, call: Call) -> bytes:
    """Body of a REPEAT or GRAPH frame: one call, to be made so many times."""
    return BURST_HEAD.pack(number, times, 0) + pack_call(call)


def unpack_repeat(body: bytes) -> tuple[int, int, Call]:
    """Inverse of `pack_repeat`: the number, how many times, and the call."""
    number, times, _ = BURST_HEAD.unpack_from(body)
    return number, times, unpack_call(body, BURST_HEAD.size)


def unpack_burst(body: bytes) -> tuple[int, tuple[Call, ...]]:
    """Inverse of `pack_burst`, as the burst's id and its calls; used by the torch runner."""
    burst_id, count, _ = BURST_HEAD.unpack_from(body)
    calls = []
    at = BURST_HEAD.size
    for _ in range(count):
        call = unpack_call(body, at)
        at += CALL_HEAD.size + len(call.arguments) * ARGUMENT.size
        calls.append(call)
    return burst_id, tuple(calls)


def unpack_call(body: bytes, at: int = 0) -> Call:
    """Inverse of `pack_call`, from position `at`; used by the torch runner."""
    call_id, count, setup, *ranges = CALL_HEAD.unpack_from(body, at)
    inputs_low, inputs_high, outputs_low, outputs_high = ranges
    arguments = []
    for index in range(count):
        kind, _, nbytes, input_offset, output_offset, value = ARGUMENT.unpack_from(
            body, at + CALL_HEAD.size + index * ARGUMENT.size
        )
        arguments.append(Argument(ArgumentKind(kind), nbytes, input_offset, output_offset, value))
    return Call(
        call_id, tuple(arguments), inputs_low, inputs_high, outputs_low, outputs_high, setup
    )


def pack_done(done: Done) -> bytes:
    """Body of a DONE frame; used by the torch runner."""
    host_ns = min(done.host_ns, HOST_LIMIT_NS)
    body = DONE_HEAD.pack(done.call_id, done.time_ns, len(done.outputs), host_ns)
    for record in done.outputs:
        code = DTYPES.index(record.dtype) if record.dtype in DTYPES else OTHER_DTYPE
        pad = (0,) * (MAX_DIMENSIONS - len(record.shape))
        shape, strides = (*record.shape, *pad), (*record.strides, *pad)
        head = code, len(record.shape)
        body += OUTPUT_RECORD.pack(*head, *shape, *strides, record.nbytes, record.address)
    return body


def pack_error(code: ErrorCode, text: str) -> bytes:
    """Body of an ERROR frame, its text cut to `TEXT_LIMIT` bytes."""
    return ERROR_HEAD.pack(code) + text.encode(errors="replace")[:TEXT_LIMIT]


def unpack_reply(kind: int, body: bytes) -> float | Done | Failed:
    """A runner's frame: READY's overhead in ns, or `Done`, or `Failed`.

    Raises `WireError` on missing or extra bytes, and on times that are not finite or too short.
    """
    try:
        match kind:
            case Reply.READY:
                return _finite(READY_BODY.unpack(body)[0])
            case Reply.DONE:
                return _unpack_done(body)
            case Reply.ERROR:
                code = ErrorCode(ERROR_HEAD.unpack_from(body)[0])
                text = body[ERROR_HEAD.size :][:TEXT_LIMIT].decode(errors="replace")
                return Failed(code, text)
    except (struct.error, ValueError) as error:
        raise WireError(f"bad frame body: {error}") from None
    raise WireError(f"unknown kind of frame: {kind}")


def _unpack_done(body: bytes) -> Done:
    call_id, time_ns, count, host_ns = DONE_HEAD.unpack_from(body)
    if count > MAX_OUTPUTS or len(body) != DONE_HEAD.size + count * OUTPUT_RECORD.size:
        raise WireError("missing or extra bytes in an acknowledgement")
    if not time_ns >= SHORTEST_NS:
        raise WireError(f"a time of {time_ns} ns")
    records = tuple(
        _unpack_record(body, DONE_HEAD.size + index * OUTPUT_RECORD.size) for index in range(count)
    )
    return Done(call_id, _finite(time_ns), records, host_ns)


def _unpack_record(body: bytes, at: int) -> OutputRecord:
    code, dimensions, *rest = OUTPUT_RECORD.unpack_from(body, at)
    if dimensions > MAX_DIMENSIONS:
        raise WireError(f"an output with {dimensions} dimensions")
    shape, strides, (nbytes, address) = rest[:8], rest[8:16], rest[16:]
    dtype = DTYPES[code] if code < len(DTYPES) else "other"
    shown = tuple(shape[:dimensions]), tuple(strides[:dimensions])
    return OutputRecord(dtype, *shown, nbytes, address)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise WireError(f"a time of {value} ns")
    return value
