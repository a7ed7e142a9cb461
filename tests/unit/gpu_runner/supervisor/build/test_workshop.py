"""A workshop compiles what processes ask for, whatever they send."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Callable
from typing import Any

import pytest

from gpu_runner.data import codec
from gpu_runner.data.extension import Extension
from gpu_runner.supervisor.build.workshop import EXTENSIONS_LIMIT, Made, Workshop
from gpu_runner.supervisor.host.killed import KilledFromOutside

ASKED = Extension(name="own", files={"a.cpp": "int x;"}, sources=("a.cpp",))


def made(asked: Extension) -> Made:
    return Made(asked.name, "a warning", b"\x7fELF" + asked.name.encode())


def ask(shop: Workshop, document: Any, send: Callable[[Any], bytes]) -> tuple[Any, bytes]:
    """What a process is answered: the words, and the library."""
    theirs = socket.socket(fileno=socket.dup(shop.descriptor))
    with theirs, tempfile.TemporaryFile() as file:
        file.write(send(document))
        file.flush()
        socket.send_fds(theirs, [b"?"], [file.fileno()])
        told, descriptors, _, _ = socket.recv_fds(theirs, 1 << 18, 1)
    library = b""
    for descriptor in descriptors:
        with open(descriptor, "rb") as given:
            library = given.read()
    return json.loads(told), library


def encoded(document: Any) -> bytes:
    return json.dumps(codec.encode(document)).encode()


def test_a_library_comes_with_its_key_and_goes_into_the_archive() -> None:
    with Workshop(made) as shop:
        told, library = ask(shop, ASKED, encoded)
    assert (told["key"], told["name"], library) == (ASKED.key(), "own", b"\x7fELFown")
    assert shop.files == {f"extensions/{ASKED.key()}/own.so": library}


@pytest.mark.parametrize("sent", [b"", b"{}", b"nonsense", b"[" * 99_999, b"9" * (9 << 20)])
def test_what_is_no_request_is_refused_and_the_next_is_served(sent: bytes) -> None:
    with Workshop(made) as shop:
        told, library = ask(shop, sent, bytes)
        assert (told["key"], library) == ("", b"")
        assert told["log"].startswith("error: ")
        assert ask(shop, ASKED, encoded)[1]


def test_a_module_has_so_many_extensions_at_most() -> None:
    with Workshop(made) as shop:
        for number in range(EXTENSIONS_LIMIT):
            asked = Extension(name="own", files={"a.cpp": str(number)}, sources=("a.cpp",))
            assert ask(shop, asked, encoded)[1]
        told, library = ask(shop, ASKED, encoded)
    assert (library, "more than" in told["log"]) == (b"", True)


def test_what_goes_wrong_on_our_side_is_raised_here() -> None:
    def killed(asked: Extension) -> Made:
        raise KilledFromOutside("by somebody")

    unanswered = pytest.raises(json.JSONDecodeError)
    with pytest.raises(KilledFromOutside), Workshop(killed) as shop, unanswered:
        ask(shop, ASKED, encoded)
