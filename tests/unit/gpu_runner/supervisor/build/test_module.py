"""Ways to prepare a Python module: what it asks of programs and compilers."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from gpu_runner.data import codec
from gpu_runner.data.extension import Extension
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language
from gpu_runner.supervisor.build import build
from gpu_runner.supervisor.build.answers import asked_again
from gpu_runner.supervisor.build.module import ModuleRecipe, module_recipe
from gpu_runner.supervisor.build.triton_compiler import TritonCompiler
from gpu_runner.supervisor.build.workshop import EXTENSIONS_LIMIT, Made, Make, Wanted, Workshop
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.killed import KilledFromOutside
from tests.protocol.evaluating import needs_jail

PLAIN = "import torch\n\ndef forward(x):\n    return torch.relu(x)\n"


def recipe(source: str, config: SupervisorConfig) -> ModuleRecipe:
    return module_recipe(Solution(source=source, language=Language.PYTHON), config)


def test_comments_and_layout_are_no_part_of_what_is_compiled(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    plain, other = recipe(PLAIN, config), recipe(PLAIN.replace("relu", "exp"), config)
    commented = recipe(f"# A comment\n\n{PLAIN}# another\n", config)
    assert plain.key() == commented.key() != other.key()
    assert plain.form != commented.form  # which lines of the source its lines are


HELLO = [sys.executable, "-c", "print('hello')"]
LISTED = ["cat", "/tmp/prepared/triton/kept"]
FORGED = {"code": 0, "merged": False, "stdout": ["str", "forged"], "stderr": None}


def key(command: Any, own: Any = None) -> str:
    return json.dumps([command, None, own or {}])


@needs_jail
def test_answers_are_the_machine_s_own(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    failing = [sys.executable, "-c", "raise SystemExit(3)"]
    told = {key(command): FORGED for command in (HELLO, LISTED, failing, "echo $HOME", ["nobody"])}
    found = json.loads(
        asked_again(json.dumps(told).encode(), None, {"triton/kept": b"compiled"}, config)
    )
    answers = {command: answer["stdout"][1] for command, answer in found.items()}
    assert answers == {key(HELLO): "hello\n", key(LISTED): "compiled", key("echo $HOME"): "/tmp\n"}
    again = json.loads(
        asked_again(json.dumps(told).encode(), json.dumps(found).encode(), {}, config)
    )
    assert again[key(LISTED)] == found[key(LISTED)]  # what is known is not asked again


@needs_jail
def test_a_command_that_writes_the_answers_gets_none(tmp_path: Path) -> None:
    """Its author could otherwise make an evaluation fail as if by our fault."""
    forging = (
        "for file in /proc/$PPID/fd/*; do case $(readlink $file) in"
        " *answers*) head -c 9999 /dev/zero >>$file;; esac; done"
    )
    told = json.dumps({key(forging): FORGED}).encode()
    assert asked_again(told, None, {}, SupervisorConfig(cache_folder=tmp_path)) == b"{}"


@pytest.mark.parametrize(
    "claimed",
    [
        None,
        b"nonsense",
        b"[]",
        b"[" * 100_000,
        json.dumps({"no command": FORGED}).encode(),
        json.dumps({key([1, 2]): FORGED}).encode(),
        json.dumps({key(HELLO, {"A": 1}): FORGED}).encode(),
        json.dumps({key(HELLO): 3}).encode(),
        json.dumps({key(HELLO): {**FORGED, "code": math.inf}}).encode(),
    ],
)
def test_what_is_no_list_of_answers_is_none(claimed: bytes | None, tmp_path: Path) -> None:
    assert asked_again(claimed, None, {}, SupervisorConfig(cache_folder=tmp_path)) == b"{}"


ASKED = Extension(name="own", files={"a.cpp": "int x;"}, sources=("a.cpp",))


def made(asked: Extension, wanted: Wanted) -> Made:
    return Made(asked.name, "a warning", b"\x7fELF" + asked.name.encode())


def send(shop: Workshop, content: bytes, descriptor: int | None = None) -> None:
    """Ask for an extension, by a file with this content, or by another descriptor."""
    theirs = socket.socket(fileno=socket.dup(shop.descriptor))
    with theirs, tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        socket.send_fds(theirs, [b"?"], [file.fileno() if descriptor is None else descriptor])


def ask(shop: Workshop, document: Any, written: Callable[[Any], bytes]) -> tuple[Any, bytes]:
    """What a process is answered: the words, and the library."""
    send(shop, written(document))
    with socket.socket(fileno=socket.dup(shop.descriptor)) as theirs:
        told, descriptors, _, _ = socket.recv_fds(theirs, 1 << 18, 1)
    library = b""
    for descriptor in descriptors:
        with open(descriptor, "rb") as given:
            library = given.read()
    return json.loads(told), library


def workshop(make: Make) -> Workshop:
    return Workshop(make, lambda: TritonCompiler(SupervisorConfig()))


def encoded(document: Any) -> bytes:
    return json.dumps(codec.encode(document)).encode()


def test_a_library_comes_with_its_key_and_goes_into_the_archive() -> None:
    with workshop(made) as shop:
        told, library = ask(shop, ASKED, encoded)
    assert (told["key"], told["name"], library) == (ASKED.key(), "own", b"\x7fELFown")
    assert shop.files == {f"extensions/{ASKED.key()}/own.so": library}


@pytest.mark.parametrize(
    "sent",
    [
        *(b"", b"{}", b"nonsense", b"[" * 99_999, b"9" * (9 << 20)),
        *(json.dumps({name: 1}).encode() for name in ("\ud800", "x" * 999_999)),
    ],
)
def test_what_is_no_request_is_refused_and_the_next_is_served(sent: bytes) -> None:
    with workshop(made) as shop:
        told, library = ask(shop, sent, bytes)
        assert (told["key"], library) == ("", b"")
        assert told["log"].startswith("error: ")
        assert ask(shop, ASKED, encoded)[1]


def test_a_module_has_so_many_extensions_at_most() -> None:
    with workshop(made) as shop:
        for number in range(EXTENSIONS_LIMIT):
            asked = Extension(name="own", files={"a.cpp": str(number)}, sources=("a.cpp",))
            assert ask(shop, asked, encoded)[1]
        told, library = ask(shop, ASKED, encoded)
    assert (library, "more than" in told["log"]) == (b"", True)


def test_what_goes_wrong_on_our_side_is_raised_here() -> None:
    def killed(asked: Extension, wanted: Wanted) -> Made:
        raise KilledFromOutside("by somebody")

    unanswered = pytest.raises(json.JSONDecodeError)
    with pytest.raises(KilledFromOutside), workshop(killed) as shop, unanswered:
        ask(shop, ASKED, encoded)


def test_nobody_waits_for_what_an_ended_process_has_asked_for() -> None:
    """It could hold the device for as long as a compiler takes."""
    begun, ended = Event(), Event()

    def endless(asked: Extension, wanted: Wanted) -> Made:
        begun.set()
        while wanted():
            time.sleep(0.01)
        ended.set()
        return Made(asked.name, "", None)

    with workshop(endless) as shop:
        send(shop, encoded(ASKED))
        assert begun.wait(60)
        assert shop.busy_s() > 0
    assert ended.is_set()
    assert shop.busy_s() == 0


def test_a_descriptor_that_was_sent_does_not_outlive_its_process() -> None:
    """One of a GPU would hold its memory while others are measured."""
    shop, (reading, writing) = workshop(made), os.pipe()
    with shop:
        for _ in range(3):
            send(shop, b"", descriptor=writing)
        os.close(writing)
    assert os.read(reading, 1) == b""  # nobody has the other end any more
    os.close(reading)
    with shop:
        assert ask(shop, ASKED, encoded)[1]


def test_who_does_not_read_answers_stops_nobody() -> None:
    with workshop(made) as shop:
        flood = Thread(target=asked_without_end, args=[shop], daemon=True)
        flood.start()
        flood.join(0.5)
        assert flood.is_alive()
    assert shop.busy_s() == 0


def asked_without_end(shop: Workshop) -> None:
    with suppress(OSError):
        while True:
            send(shop, b"{}")


@pytest.mark.parametrize("log", ["\0" * 99_999, "\U0001f600" * 99_999])
def test_a_long_log_arrives(log: str) -> None:
    with workshop(lambda asked, wanted: Made(asked.name, log, None)) as shop:
        told, _ = ask(shop, ASKED, encoded)
    assert log[:1000] in told["log"]


def test_a_file_that_cannot_be_read_is_no_request() -> None:
    with workshop(made) as shop, open("/proc/self/mem", "rb") as memory:
        send(shop, b"", descriptor=memory.fileno())
        assert ask(shop, ASKED, encoded)[0]["log"].startswith("error: ")


@needs_jail
def test_hidden_workloads_leave_nothing_that_others_could_find(tmp_path: Path) -> None:
    """Whether a text was compiled before shows in the time that it takes."""
    config = SupervisorConfig(cache_folder=tmp_path)

    def builds(*, hidden: bool) -> set[str]:
        with build.workshop(config, hidden=hidden) as shop:
            assert ask(shop, ASKED, encoded)[1]
        return {path.name for path in (tmp_path / "builds").iterdir()}

    first = builds(hidden=True)
    assert len(builds(hidden=False)) == 2 * len(first)


def test_flags_that_no_compiler_can_be_given_are_the_author_s_fault(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path, allow_unjailed=True)
    asked = dataclasses.replace(ASKED, flags=("-DX=" + "x" * 200_000,))
    with build.workshop(config) as shop:
        assert "too long" in ask(shop, asked, encoded)[0]["log"]
