"""Files of every format are taken as editors on Windows save them, but for UTF-16."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_runner.__main__ import main
from gpu_runner.data.codec import DataError, encode
from gpu_runner.data.formats import load_task
from tests.unit.gpu_runner.data.test_formats_kbench import KERNELBENCH, write
from tests.unit.gpu_runner.data.test_formats_robust_kbench import BACKWARD, CONFIG, FORWARD
from tests.unit.gpu_runner.data.test_variants import VARIANT


def native(folder: Path) -> Path:
    write(folder / "row_sum", task_bf16__toml=VARIANT)
    return folder / "row_sum" / "task_bf16.toml"


def kernelbench(folder: Path) -> Path:
    path = folder / "1_Copy.py"
    path.write_text(KERNELBENCH)
    return path


def robust(folder: Path) -> Path:
    (folder / "scale").mkdir()
    for direction, text in (("forward", FORWARD), ("backward", BACKWARD)):
        (folder / "scale" / f"func_{direction}.py").write_text(text)
        (folder / "scale" / f"config_{direction}.json").write_text(json.dumps(CONFIG, indent=1))
        (folder / "scale" / f"{direction}.cu").write_text("// a kernel\n")
    return folder / "scale"


def encoded(folder: Path) -> Path:
    document = encode(load_task(write(folder / "row_sum")))
    path = folder / "task.json"
    path.write_text(json.dumps(document, indent=1))
    return path


def resave(folder: Path, mark: bytes, encoding: str, end: str) -> None:
    for path in folder.rglob("*.*"):
        text = path.read_text().replace("\n", end)
        path.write_bytes(mark + text.encode(encoding))


FORMATS = [native, kernelbench, robust, encoded]


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_marks_and_ends_of_lines_make_no_other_task(
    tmp_path: Path, make: Callable[[Path], Path], end: str
) -> None:
    path = make(tmp_path)
    task = load_task(path)
    resave(tmp_path, b"\xef\xbb\xbf", "utf-8", end)
    assert load_task(path) == task
    assert load_task(path).digest() == task.digest()


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize(
    ("mark", "encoding", "reason"),
    [
        (b"\xff\xfe", "utf-16-le", "is UTF-16 text: save it as UTF-8"),
        (b"\xff\xfe\0\0", "utf-32-le", "is UTF-32 text: save it as UTF-8"),
        (b"", "utf-16-le", "contains a NUL character: is it a binary file, or saved as UTF-16?"),
    ],
)
def test_wide_characters_are_refused_in_words(
    tmp_path: Path, make: Callable[[Path], Path], mark: bytes, encoding: str, reason: str
) -> None:
    path = make(tmp_path)
    resave(tmp_path, mark, encoding, "\r\n")
    with pytest.raises(DataError) as caught:
        load_task(path)
    assert caught.value.reason == reason


def test_a_kernel_in_utf_16_is_misuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tmp_path / "kernel.cpp"
    kernel.write_bytes("int a;".encode("utf-16"))
    assert main(["evaluate", "--task", "vector_add", "--kernel", str(kernel)]) == 2
    assert "kernel: is UTF-16 text: save it as UTF-8" in capsys.readouterr().err
