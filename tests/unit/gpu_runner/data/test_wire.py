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


def test_a_frame_that_ends_too_early() -> None:
    with pytest.raises(EOFError):
        read_frame(reader(frame(Command.CALL, b"abc")[:-1]))


def test_a_frame_with_another_magic() -> None:
    with pytest.raises(WireError):
        read_frame(reader(HEADER.pack(MAGIC + 1, Reply.READY, 0)))


def test_a_length_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(WireError):
        read_frame(reader(HEADER.pack(MAGIC, Reply.DONE, BODY_LIMIT + 1)))
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
    assert unpack_call(pack_call(call)) == call


def test_a_call_without_arguments() -> None:
    call = Call(0, (), 0, 0, 0, 0)
    assert unpack_call(pack_call(call)) == call


def test_an_acknowledgement_survives_the_round_trip() -> None:
    assert unpack_reply(Reply.DONE, pack_done(DONE)) == DONE


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_has_its_code(dtype: str) -> None:
    done = Done(1, 1.0, (OutputRecord(dtype, (1,), (1,), 8),))
    assert unpack_reply(Reply.DONE, pack_done(done)) == done


def test_a_dtype_without_a_code_arrives_as_other() -> None:
    done = unpack_reply(
        Reply.DONE, pack_done(Done(1, 1.0, (OutputRecord("complex64", (1,), (1,), 8),)))
    )
    assert isinstance(done, Done)
    assert done.outputs[0].dtype == "other"


@pytest.mark.parametrize("time_ns", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_no_clock_shows(time_ns: float) -> None:
    with pytest.raises(WireError):
        unpack_reply(Reply.DONE, pack_done(Done(1, time_ns, ())))


@pytest.mark.parametrize("change", [lambda body: body[:-1], lambda body: body + b"\0"])
def test_missing_or_extra_bytes(change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(WireError):
        unpack_reply(Reply.DONE, change(pack_done(DONE)))


def test_an_empty_acknowledgement() -> None:
    with pytest.raises(WireError):
        unpack_reply(Reply.DONE, b"")


def test_more_outputs_than_allowed() -> None:
    with pytest.raises(WireError):
        unpack_reply(Reply.DONE, pack_done(Done(1, 1.0, (RECORD,) * (MAX_OUTPUTS + 1))))


def test_more_dimensions_than_there_are_places() -> None:
    body = bytearray(pack_done(Done(1, 1.0, (RECORD,))))
    struct.pack_into("<I", body, len(body) - struct.calcsize("<II8q8qQ") + 4, 9)
    with pytest.raises(WireError):
        unpack_reply(Reply.DONE, bytes(body))


def test_readiness_carries_the_overhead() -> None:
    assert unpack_reply(Reply.READY, READY_BODY.pack(12.5)) == 12.5
    with pytest.raises(WireError):
        unpack_reply(Reply.READY, READY_BODY.pack(math.nan))
    with pytest.raises(WireError):
        unpack_reply(Reply.READY, b"\0" * 9)


def test_a_failure_carries_bounded_text() -> None:
    failed = unpack_reply(Reply.ERROR, pack_error(ErrorCode.DEVICE, "ä" * TEXT_LIMIT))
    assert isinstance(failed, Failed)
    assert failed.code is ErrorCode.DEVICE
    assert len(failed.text.encode()) <= TEXT_LIMIT + 3  # a letter cut in half is replaced


def test_text_that_is_not_utf8_is_still_text() -> None:
    failed = unpack_reply(Reply.ERROR, ERROR_HEAD.pack(ErrorCode.EXCEPTION) + b"\xff\xfe")
    assert isinstance(failed, Failed)
    assert failed.text == "��"


@pytest.mark.parametrize("kind", [0, 4, 99])
def test_an_unknown_kind(kind: int) -> None:
    with pytest.raises(WireError):
        unpack_reply(kind, b"")


def test_an_unknown_error_code() -> None:
    with pytest.raises(WireError):
        unpack_reply(Reply.ERROR, ERROR_HEAD.pack(77))
    with pytest.raises(WireError):
        unpack_reply(Reply.ERROR, b"")
