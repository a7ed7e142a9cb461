"""Texts become a task or faults with their lines, however they were saved, and texts again."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.__main__ import main
from gpu_runner.data.codec import DataError, encode
from gpu_runner.data.formats import Fault, built_in_tasks, load_task, read_folder
from gpu_runner.data.formats.folder import FAULTS_LIMIT
from gpu_runner.data.formats.text import FILES_LIMIT, TASK_LIMIT_BYTES
from gpu_runner.data.task import Task, Tolerance, Workload
from tasks_app.formats.task_writing import write_folder
from tests.unit.gpu_runner.data import test_formats_kernelbench as kernelbench
from tests.unit.gpu_runner.data import test_formats_robust_kbench as robust
from tests.unit.gpu_runner.data.test_formats_kbench import (
    KERNELBENCH,
    REFERENCE,
    SPECIFICATION,
    write,
)
from tests.unit.gpu_runner.data.test_formats_robust_kbench import BACKWARD, CONFIG, FORWARD
from tests.unit.gpu_runner.data.test_variants import VARIANT

NAIVE = "kernels/naive.cpp"
SWEEP = """
[[sweeps]]
prefix = "s_"
parameters = { N = [1, 2], C = [3], D = 1 }
[[sweeps]]
prefix = "t_"
parameters = { N = [1, 2], C = 3, D = [1] }
"""


def texts(specification: str = SPECIFICATION, **files: str) -> dict[str, str]:
    found = {"task.toml": specification, "reference.py": REFERENCE, NAIVE: "// a kernel"}
    return found | {name.replace("__", "."): text for name, text in files.items()}


def faults(files: Mapping[str, str]) -> tuple[Fault, ...]:
    task, found = read_folder(files)
    assert (task is None) == bool(found)
    for fault in found:
        assert fault.reason
        if fault.line is not None:
            assert 1 <= fault.line <= len(files[fault.file].split("\n"))
    return found


def line(fault: Fault, files: Mapping[str, str]) -> str:
    """The text at which a fault points."""
    assert fault.line is not None
    return files[fault.file].split("\n")[fault.line - 1]


def assert_round_trip(task: Task) -> None:
    again, found = read_folder(write_folder(task))
    assert found == ()
    assert again == task
    assert again is not None
    assert again.digest() == task.digest()


def test_texts_are_the_task_of_the_same_folder(tmp_path: Path) -> None:
    assert read_folder(texts()) == (load_task(write(tmp_path)), ())


def test_every_built_in_task_survives_being_written() -> None:
    tasks = built_in_tasks()
    assert len(tasks) >= 130
    for task in tasks[::8]:  # `test_task_writing` tries the others
        assert_round_trip(task)


def test_tasks_of_other_formats_survive_being_written(tmp_path: Path) -> None:
    module = tmp_path / "level1" / "3_Scale.py"
    module.parent.mkdir()
    module.write_text(kernelbench.PROBLEM)
    assert_round_trip(load_task(module))
    folder = robust.write(tmp_path / "task_1")
    robust.add_backward(folder)
    (folder / "forward.cu").write_text("// a kernel")
    assert_round_trip(load_task(folder))
    assert 'format = "robust-kbench"' in write_folder(load_task(folder))["task.toml"]


def test_parameters_that_toml_cannot_hold(tmp_path: Path) -> None:
    task, _ = read_folder(texts(reference__py=REFERENCE.replace("D)", "D, **rest)")))
    assert task is not None
    sizes = {"N": 1, "C": 2, "D": 3}
    held: dict[str, Any] = {"": [1, [True, 2.5e-7, "é\n"]], "a.b": {"x y": {}}, "big": 2**63}
    plain = Workload(name="p", parameters=sizes | held)
    null = Workload(name="n", parameters=sizes | held | {"none": [None, {"x": None}]})
    bound = Tolerance(reduction="C", constant=math.inf, growth=1e22)
    odd = replace(task, workloads=(*task.workloads, plain, null), tolerance=bound)
    assert_round_trip(odd)
    folder = tmp_path / "odd"
    folder.mkdir()
    for name, text in write_folder(replace(odd, files={"reference.py": "", **odd.files})).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    assert load_task(folder) == odd
    nan = Workload(name="nan", parameters=sizes | {"x": math.nan})
    with pytest.raises(DataError) as caught:
        write_folder(replace(task, workloads=(*task.workloads, nan)))
    assert caught.value.field == "workloads[2].parameters"
    wrong = texts(SPECIFICATION.replace("{ N = 4, C = 16, D = 2 }", "'{'"))
    (fault,) = faults(wrong)
    assert fault.field == "workloads[0].parameters"
    assert "JSON" in fault.reason
    assert line(fault, wrong) == "parameters = '{'"


def test_a_file_cannot_have_the_name_of_a_specification() -> None:
    task, _ = read_folder(texts())
    assert task is not None
    for name in ("task.toml", "task_bf16.toml"):
        with pytest.raises(DataError, match="files that specify a task"):
            write_folder(replace(task, files={**task.files, name: ""}))
    (fault,) = faults(texts(task_bf16__toml=""))
    assert fault.file == "task_bf16.toml"


@pytest.mark.parametrize(
    ("old", "new", "field", "at"),
    [
        ("C = 16", "C = 1979-05-27", "workloads[0].parameters.C", "parameters = { N = 4"),
        ('abi = "c"', 'abi = "c"\nabi = "c"', "task.toml", 'abi = "c"'),
        ('name = "small"', "", "workloads[0].name", "[[workloads]]"),
        ('name = "large"', 'name = "small"', "workloads[1].name", 'name = "small"'),
        ("D = 2 }", f"D = 0x1{'0' * 5000} }}", "workloads[0].parameters.D", "parameters = { N"),
        ("D = 2 }", "D = " + "[" * 40 + "]" * 40 + " }", None, "parameters = { N"),
        ("D = 2 }", "D = " + "[" * 9000 + "]" * 9000 + " }", "task.toml", None),
        ('title = "Row sums"', "title = " + "9" * 5000, "task.toml", None),
        ('title = "Row sums"', "a" + ".a" * 300_000 + " = 1", "task.toml", None),
        ('language = "cpp"', SWEEP.replace("D = 1", "E = 1"), "kernels[0].language", "[[kernels]]"),
        ('language = "cpp"', 'language = "cpp"\n' + SWEEP.replace("D = 1", "E = 1"), None, "E = 1"),
        ('language = "cpp"', 'language = "cpp"\n[[sweeps]]\nx = 1', None, "[[sweeps]]"),
        ("parameters = { N = 4,", SWEEP.strip() + "\nx = 4\n#", None, "x = 4"),
    ],
)
def test_a_fault_points_at_its_line(old: str, new: str, field: str | None, at: str | None) -> None:
    assert old in SPECIFICATION
    files = texts(SPECIFICATION.replace(old, new, 1))
    fault = faults(files)[0]
    assert fault.field == field or field is None
    if at is None:
        assert fault.line is None
    else:
        assert fault.file == "task.toml"
        assert at in line(fault, files)
    assert len(fault.reason) < 1000


def test_several_faults_are_told_at_once() -> None:
    files = texts(
        SPECIFICATION.replace('abi = "c"', "abi = 1\ncolour = 1").replace("hidden = true", "x = 1"),
        reference__py="def f(:\n",
        other__py="\n\nx = (",
    )
    told = [(fault.file, fault.field, fault.line) for fault in faults(files)]
    assert told == [
        ("reference.py", "reference.py", 1),
        ("other.py", "other.py", 3),
        ("task.toml", "colour", 7),
        ("task.toml", "abi", 6),
        ("task.toml", "workloads[1].x", 19),
    ]
    many = SPECIFICATION.replace('abi = "c"', "".join(f"x{i} = 1\n" for i in range(999)))
    assert len(faults(texts(many))) == FAULTS_LIMIT


@pytest.mark.parametrize(
    ("files", "field", "reason", "file"),
    [
        ({}, "task.toml", "is missing: add it with name", ""),
        (
            texts(SPECIFICATION.replace("N * C", "N * X")),
            None,
            "uses 'X', but no workload",
            "task.toml",
        ),
        (texts(SPECIFICATION.replace("N * C", "1 / 0")), None, ", in the workload '", "task.toml"),
        (texts(**{NAIVE: "x" * (2**20 + 1)}), NAIVE, "the limit is 1048576", NAIVE),
        (texts(b="\ud800"), "b", "surrogate", "b"),
        (texts(**{"\udc00": ""}), "files.?", "surrogate", ""),
        (texts(**{"reference.py/x": ""}), "reference.py/x", "which is a file", None),
        (texts(b="x" * (TASK_LIMIT_BYTES + 1)), "files", "are larger than", ""),
        (texts(**{str(i): "" for i in range(FILES_LIMIT)}), "files", "has at most", ""),
        (texts(task__toml="\ud800"), "task.toml", "surrogate", "task.toml"),
        (texts(b__py="-" * 100_000 + "1"), "b.py", "is not valid Python", "b.py"),
        (texts(b__py="1" + "+1" * 60_000), "b.py", "is not valid Python", "b.py"),
        (texts(b__py=" " * 2**18), "b.py", "too many for a module", "b.py"),
        (texts(**{f"{i}.py": " " * 2**17 for i in range(4)}), "files", "of Python", ""),
        (texts(task__toml="\n" * 2**20), "task.toml", "has more than", "task.toml"),
        (texts(SPECIFICATION.replace("N * C", "+1" * 1999)), None, "nested too deeply", None),
        (texts(SPECIFICATION.replace("N * C", "(((9**16)**16)**16)**16")), None, "above", None),
    ],
)
def test_bad_content_is_a_fault(
    files: dict[str, str], field: str | None, reason: str, file: str | None
) -> None:
    found = faults(files)
    matching = [f for f in found if reason in f.reason and field in (None, f.field)]
    assert matching
    assert matching[0].file == file or file is None
    json.dumps([encode(fault) for fault in found], ensure_ascii=False).encode()


def test_garbled_specifications_are_faults_or_tasks() -> None:
    draw = random.Random(7)
    base = SPECIFICATION + SWEEP
    for _ in range(150):
        lines = base.split("\n")
        for _ in range(draw.randint(1, 3)):
            index = draw.randrange(len(lines))
            text = lines[index]
            at = draw.randrange(len(text) + 1)
            lines[index] = draw.choice(
                [
                    text[:at] + draw.choice("\"'[]{}=,.#\\\0\r\x85é-1") + text[at:],
                    text[:at] + text[at + 1 :],
                    text[at:],
                    text + "\n" + draw.choice(lines),
                    "",
                ]
            )
        faults(texts("\n".join(lines)))


def test_garbled_references_are_faults_or_tasks() -> None:
    draw = random.Random(11)
    for _ in range(80):
        at, length = draw.randrange(len(REFERENCE)), draw.randint(0, 9)
        garbled = (
            REFERENCE[:at] + draw.choice(["", "\r", "(", '"', "\x0c"]) + REFERENCE[at + length :]
        )
        faults(texts(reference__py=garbled))


def test_only_a_kernel_may_import_what_an_oracle_lacks() -> None:
    module = "import triton\n"
    assert faults(texts() | {"kernels/best.py": module}) == ()
    (fault,) = faults(texts() | {"helper.py": module})
    assert "imports triton" in fault.reason


def native(folder: Path) -> Path:
    write(folder / "row_sum", task_bf16__toml=VARIANT)
    return folder / "row_sum" / "task_bf16.toml"


def problem(folder: Path) -> Path:
    path = folder / "1_Copy.py"
    path.write_text(KERNELBENCH)
    return path


def two_directions(folder: Path) -> Path:
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


NUL = "contains a NUL character"
FORMATS = [native, problem, two_directions, encoded]


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
        (b"", "utf-16-le", f"{NUL} in line 1, column 2: remove it, or save the text as UTF-8"),
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
