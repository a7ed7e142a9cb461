"""Ways to prepare a Python module: what it asks of programs and compilers."""

from __future__ import annotations

import json
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data import codec
from gpu_runner.data.extension import Extension
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language
from gpu_runner.supervisor.build.answers import asked_again
from gpu_runner.supervisor.build.module import ModuleRecipe, module_recipe
from gpu_runner.supervisor.build.triton_compiler import TritonCompiler
from gpu_runner.supervisor.build.workshop import EXTENSIONS_LIMIT, Made, Make, Workshop
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.killed import KilledFromOutside

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


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
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
    ],
)
def test_what_is_no_list_of_answers_is_none(claimed: bytes | None, tmp_path: Path) -> None:
    assert asked_again(claimed, None, {}, SupervisorConfig(cache_folder=tmp_path)) == b"{}"


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


def workshop(make: Make) -> Workshop:
    return Workshop(make, TritonCompiler(SupervisorConfig(), deadline=0.0))


def encoded(document: Any) -> bytes:
    return json.dumps(codec.encode(document)).encode()


def test_a_library_comes_with_its_key_and_goes_into_the_archive() -> None:
    with workshop(made) as shop:
        told, library = ask(shop, ASKED, encoded)
    assert (told["key"], told["name"], library) == (ASKED.key(), "own", b"\x7fELFown")
    assert shop.files == {f"extensions/{ASKED.key()}/own.so": library}


@pytest.mark.parametrize("sent", [b"", b"{}", b"nonsense", b"[" * 99_999, b"9" * (9 << 20)])
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
    def killed(asked: Extension) -> Made:
        raise KilledFromOutside("by somebody")

    unanswered = pytest.raises(json.JSONDecodeError)
    with pytest.raises(KilledFromOutside), workshop(killed) as shop, unanswered:
        ask(shop, ASKED, encoded)
