"""Kernels of several files go to the site from a folder, and come back into one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpu_runner.data.files import FILES_LIMIT, SUFFIXES
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES
from kbench_client.exits import Stop
from kbench_client.kernels import BESIDE, LIMIT_BYTES, LIMIT_FILES, read_kernels, write_files
from runs_app.models import Submission
from tests import factories as make
from tests.unit.kbench_client.conftest import Run as Command

pytestmark = [pytest.mark.django_db]

MAIN = f'// kbench: task=scale device=cpu mode=test\n#include "in/sum.h"\n{make.SOURCE}'
TEXTS = {"main.cpp": MAIN, "in/sum.h": "int sum;\n", "b.h": "int b;\n"}


@pytest.fixture
def folder(home: Path) -> Path:
    made = home / "mine"
    write_files(made, {**TEXTS, "README.md": "x", ".git/a.h": "x", "__pycache__/b.py": "x"})
    return made


@pytest.mark.usefixtures("ada")
def test_a_folder_is_submitted_and_comes_back(kbench: Command, folder: Path, home: Path) -> None:
    make.make_task_version()
    ran = kbench("submit", str(folder), "--json")
    assert ran.status == 0, ran.err
    submission = Submission.objects.get()
    assert submission.solution.texts == TEXTS
    assert kbench("source", ran.document["id"]).status == 2
    out = str(home / "back")
    assert kbench("source", ran.document["id"], "--out", out).status == 0
    written = {n: (home / "back" / n).read_text() for n in TEXTS}
    assert written == TEXTS
    assert kbench("source", ran.document["id"], "--out", out).status == 2
    assert "files" not in kbench("show", ran.document["id"], "--json").document


@pytest.mark.usefixtures("ada")
def test_a_subfolder_of_several_files_is_imported_as_one(kbench: Command, home: Path) -> None:
    make.make_task_version()
    module, loads = "def forward(x, N): ...\n", '# kbench: task=scale\nimport torch\n# k.cu "b.h"\n'
    texts = {
        ".venv/scale.cpp": MAIN,
        "mine/main.cpp": MAIN,
        "mine/in/sum.h": "int sum;\n",
        "scale/kernel.py": module,
        "scale/pack/helper.py": module,
        "scale/k.cu": "int x;\n",
        "level/scale.py": loads + module,
        "level/b.py": module,
        "big/kernel.py": loads + module,
        **{f"big/f{number}.h": "int x;\n" for number in range(40)},
    }
    write_files(home / "all", texts)
    ran = kbench("import", "all", "--entry", "kernel.py", "--json")
    rows = {row["file"]: row["reason"] for row in ran.document}
    assert rows.pop("big") == "file: all/big has 41 files; the limit is 32"
    assert "task: the site has no task level-b" in rows.pop("level/b.py")
    assert rows == {"mine": "", "scale": "", "level/scale.py": ""}
    entered = {each.entry: sorted(each.files) for each in Submission.objects.all()}
    assert entered == {"main.cpp": ["in/sum.h"], "kernel.py": ["k.cu", "pack/helper.py"], "": []}
    plain = kbench("import", "all", "--dry-run", "--json").document
    assert [row["file"] for row in plain if row["file"].startswith("scale")] == [
        "scale/k.cu", "scale/kernel.py", "scale/pack/helper.py",
    ]  # fmt: skip
    wrong = kbench("import", "all", "--entry", "main.c", "--json").document["error"]
    assert (wrong["field"], "'main.c'" in wrong["reason"]) == ("entry", True)


@pytest.mark.usefixtures("ada")
def test_several_files_are_submitted_with_the_first_as_entry(kbench: Command, folder: Path) -> None:
    make.make_task_version()
    ran = kbench("submit", str(folder / "main.cpp"), str(folder / "in/sum.h"), "--json")
    assert ran.status == 0, ran.err
    submission = Submission.objects.get()
    assert (submission.entry, list(submission.files)) == ("main.cpp", ["in/sum.h"])
    plain = folder / "alone.cpp"
    plain.write_text(MAIN.replace('#include "in/sum.h"\n', ""))
    entered = kbench("submit", str(plain), "--json").document["id"]
    assert kbench("source", entered).out == plain.read_text() + "\n"


@pytest.mark.usefixtures("ada")
def test_an_entry_in_a_folder_is_refused_by_its_field(kbench: Command, folder: Path) -> None:
    make.make_task_version()
    (folder / "in" / "scale.cpp").write_text(MAIN)
    error = kbench("submit", str(folder), "--entry", "in/scale.cpp", "--json").document["error"]
    assert error["field"] == "entry"


def test_an_entry_that_is_not_clear_has_to_be_named(folder: Path) -> None:
    (folder / "other.cpp").write_text("int x;")
    with pytest.raises(Stop, match=r"could be any of: main.cpp, other.cpp; set --entry NAME"):
        read_kernels([folder])
    assert read_kernels([folder], "other.cpp").source == "int x;"
    with pytest.raises(Stop, match=r"'no.cpp' is not among the files"):
        read_kernels([folder], "no.cpp")
    (folder / "b.h").write_bytes(b"\xff")
    with pytest.raises(Stop, match=r"b.h is not UTF-8 text"):
        read_kernels([folder], "other.cpp")
    with pytest.raises(Stop, match="is not in the entry file's folder"):
        read_kernels([folder / "in/sum.h", folder / "main.cpp"])
    (folder / "empty").mkdir()
    with pytest.raises(Stop, match="could be any of: none"):
        read_kernels([folder / "empty"])


def test_nothing_from_outside_the_folder_is_sent(folder: Path) -> None:
    outside = folder.parent / "secret.h"
    outside.write_text("x")
    for path in (outside, folder / ".." / "secret.h"):
        with pytest.raises(Stop, match=r"secret\.h is not in the entry file's folder"):
            read_kernels([folder / "main.cpp", path])
    (folder / "link.h").symlink_to(outside)
    for paths in ([folder], [folder / "main.cpp", folder / "link.h"]):
        with pytest.raises(Stop, match=r"link\.h is a link to a file outside"):
            read_kernels(paths)
    (folder / "link.h").unlink()
    (folder / "link.h").symlink_to("b.h")
    assert read_kernels([folder]).files["link.h"] == TEXTS["b.h"]


@pytest.mark.parametrize("name", ["../x.h", "/etc/x.h", "a/../../x.h"])
def test_a_site_cannot_write_elsewhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(Stop, match="is not a path inside the folder"):
        write_files(tmp_path / "out", {name: "x"})


def test_the_client_takes_what_the_site_takes() -> None:
    assert frozenset[str]().union(*SUFFIXES.values()) == BESIDE
    assert (FILES_LIMIT, SOURCE_LIMIT_BYTES) == (LIMIT_FILES, LIMIT_BYTES)


def test_evaluate_passes_the_files_on(
    kbench: Command, folder: Path, asked: list[list[str]]
) -> None:
    (folder / "task.json").write_text(json.dumps({}))
    kbench("evaluate", str(folder), "--folder", str(folder))
    words = asked[0]
    assert words[words.index("--kernel") + 1] == str(folder / "main.cpp")
    at = words.index("--files")
    assert words[at + 1 : at + 3] == [str(folder / "b.h"), str(folder / "in/sum.h")]
