"""The binary frames: what goes in comes out, and nothing else is accepted."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable

import pytest

from gpu_runner.data.wire import (
    BODY_LIMIT,
    DTYPES,
    ERROR_HEAD,
    HEADER,
    MAGIC,
    MAX_OUTPUTS,
    OUTPUT_RECORD,
    READY_BODY,
    TEXT_LIMIT,
    Argument,
    ArgumentKind,
    Call,
    Command,
    Done,
    ErrorCode,
    Failed,
    OutputRecord,
    Reply,
    WireError,
    frame,
    pack_call,
    pack_done,
    pack_error,
    read_frame,
    unpack_call,
    unpack_reply,
)


def reader(data: bytes) -> Callable[[int], bytes]:
    stream = io.BytesIO(data)

    def read(count: int) -> bytes:
        body = stream.read(count)
        if len(body) < count:
            raise EOFError
        return body

    return read


RECORD = OutputRecord("float32", (2, 3), (3, 1), 24)
DONE = Done(7, 1234.5, (RECORD, OutputRecord("bool", (), (), 1)))


def test_a_frame_is_read_back() -> None:
    read = reader(frame(Command.CALL, b"abc") + frame(Reply.READY))
    assert read_frame(read) == (Command.CALL, b"abc")
    assert read_frame(read) == (Reply.READY, b"")
    with pytest.raises(EOFError):
        read_frame(reader(frame(Command.CALL, b"abc")[:-1]))


def test_another_magic_and_a_length_over_the_limit_are_refused_before_more_is_read() -> None:
    for head in ((MAGIC + 1, Reply.READY, 0), (MAGIC, Reply.DONE, BODY_LIMIT + 1)):
        with pytest.raises(WireError):
            read_frame(reader(HEADER.pack(*head)))
    assert read_frame(reader(frame(Reply.DONE, b"x" * 9)), limit=9)[1] == b"x" * 9


def test_a_call_survives_the_round_trip() -> None:
    call = Call(
        call_id=2**63,
        arguments=(
            Argument(ArgumentKind.INPUT, 24, 4096, 0),
            Argument(ArgumentKind.OUTPUT, 48, 0, 512),
            Argument(ArgumentKind.INOUT, 8, 1024, 2048),
            Argument(ArgumentKind.VALUE, value=2**64 - 1),
        ),
        inputs_low=256,
        inputs_high=8192,
        outputs_low=0,
        outputs_high=2**40,
        setup=3,
    )
    for each in (call, Call(0, (), 0, 0, 0, 0)):
        assert unpack_call(pack_call(each)) == each


def test_replies_survive_the_round_trip() -> None:
    assert unpack_reply(Reply.DONE, pack_done(DONE)) == DONE
    assert unpack_reply(Reply.READY, READY_BODY.pack(12.5)) == 12.5
    for dtype in (*DTYPES, "complex64"):
        done = unpack_reply(
            Reply.DONE, pack_done(Done(1, 1.0, (OutputRecord(dtype, (1,), (1,), 8),)))
        )
        assert isinstance(done, Done)
        assert done.outputs[0].dtype == (dtype if dtype in DTYPES else "other")


def test_more_dimensions_than_there_are_places() -> None:
    body = bytearray(pack_done(Done(1, 1.0, (RECORD,))))
    struct.pack_into("<I", body, len(body) - OUTPUT_RECORD.size + 4, 9)
    with pytest.raises(WireError):
        unpack_reply(Reply.DONE, bytes(body))


TIMES = (0.0, -1.0, math.nan, math.inf)  # no clock shows them


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        *[(Reply.DONE, pack_done(Done(1, time_ns, ()))) for time_ns in TIMES],
        (Reply.DONE, pack_done(DONE)[:-1]),
        (Reply.DONE, pack_done(DONE) + b"\0"),
        (Reply.DONE, pack_done(Done(1, 1.0, (RECORD,) * (MAX_OUTPUTS + 1)))),
        (Reply.READY, READY_BODY.pack(math.nan)),
        (Reply.READY, b"\0" * 9),
        (Reply.ERROR, ERROR_HEAD.pack(77)),
        *[(kind, b"") for kind in (Reply.DONE, Reply.ERROR, 0, 4, 99)],
    ],
)
def test_what_is_no_reply_is_refused(kind: int, body: bytes) -> None:
    with pytest.raises(WireError):
        unpack_reply(kind, body)


def test_a_failure_carries_bounded_text() -> None:
    failed = unpack_reply(Reply.ERROR, pack_error(ErrorCode.DEVICE, "ä" * TEXT_LIMIT))
    assert isinstance(failed, Failed)
    assert failed.code is ErrorCode.DEVICE
    assert len(failed.text.encode()) <= TEXT_LIMIT + 3  # a letter cut in half is replaced
    failed = unpack_reply(Reply.ERROR, ERROR_HEAD.pack(ErrorCode.EXCEPTION) + b"\xff\xfe")
    assert isinstance(failed, Failed)
    assert failed.text == "\ufffd\ufffd"
