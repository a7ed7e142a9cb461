"""Modules beside a submission's entry, as its processes import them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.normal_form import NormalForm
from gpu_runner.engine.runner.module import MODULE, load_module
from gpu_runner.engine.runner.preparation import _as_compilers_say
from gpu_runner.engine.runner.returned import CallError


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    before, finders = set(sys.modules), list(sys.meta_path)
    yield
    sys.meta_path[:] = finders
    for name in {MODULE, *sys.modules} - before:
        sys.modules.pop(name, None)


def loaded(folder: Path, source: str, **files: str) -> Any:
    form = NormalForm(source, files={n.replace("__", "/") + ".py": t for n, t in files.items()})
    return load_module(folder / "kbench_kernel.py", form)


def test_helpers_are_imported_in_each_usual_way(tmp_path: Path) -> None:
    source = """
import own_helper
import own_pack.inner
from own_pack.inner import value
from . import own_helper as same
from .own_pack import inner
import own_plain.last
"""
    module = loaded(
        tmp_path,
        source,
        own_helper="import own_pack.inner\nname = __name__\n",
        own_pack__inner="from own_plain import last\nvalue = last.number\n",
        own_plain__last="number = 7\n",
    )
    assert module.value == module.inner.value == module.own_pack.inner.value == 7
    assert module.own_helper.name == module.same.name == "own_helper"


def test_packages_run_what_they_begin_with(tmp_path: Path) -> None:
    form = NormalForm(
        "from own_pack import first\n",
        files={
            "own_pack/__init__.py": "from .rest import first",
            "own_pack/rest.py": "first = 1",
        },
    )
    assert load_module(tmp_path / "kbench_kernel.py", form).first == 1


def test_the_text_that_was_handed_over_runs(tmp_path: Path) -> None:
    (tmp_path / "own_helper.py").write_text("value = 'from the disk'")
    module = loaded(tmp_path, "import own_helper\n", own_helper="value = 'handed over'")
    assert module.own_helper.value == "handed over"


@pytest.mark.parametrize("name", ["pytest", "django", "torch", "numpy__x", "json", "sys"])
def test_no_file_stands_for_an_installed_module(name: str, tmp_path: Path) -> None:
    with pytest.raises(CallError) as caught:
        loaded(tmp_path, "x = 1\n", **{name: "raise SystemExit"})
    assert "has the name of a module that is installed on this runner" in caught.value.text


@pytest.mark.parametrize(
    ("helper", "words"),
    [
        ("x = 1\ny = (\n", "own_helper.py:2: error: '(' was never closed"),
        ("x = 1\n\nz = y\n", "own_helper.py:3: error: NameError: name 'y' is not defined"),
        ("import nobody_has\n", "own_helper.py:1: error: imports 'nobody_has', which"),
    ],
)
def test_errors_name_the_file(helper: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(CallError) as caught:
        loaded(tmp_path, "import own_helper\n", own_helper=helper)
    assert _as_compilers_say(caught.value.text, "main.py").startswith(words)
    with pytest.raises(CallError) as caught:
        loaded(tmp_path, "import own_other\nx = 1 / 0\n", own_other="")
    assert _as_compilers_say(caught.value.text, "main.py").startswith("main.py:2: error: Zero")


@pytest.mark.parametrize("encoding", ["unicode_escape", "utf-7", "utf-16", "rot13", "none_such"])
def test_a_text_means_what_it_shows(encoding: str, tmp_path: Path) -> None:
    hidden = f"# coding: {encoding}\n# type: +AAo-\n# \\nvalue = 2\nvalue = 1\n"
    with pytest.raises(CallError, match=r"own_helper\.py, line 1: declares an encoding"):
        loaded(tmp_path, "import own_helper\n", own_helper=hidden)
    with pytest.raises(CallError, match="line 1: declares an encoding"):
        loaded(tmp_path, hidden)


@pytest.mark.parametrize("encoding", ["utf8", "UTF-8", "latin-1", "ascii"])
def test_a_text_may_declare_what_it_is(encoding: str, tmp_path: Path) -> None:
    text = f"# -*- coding: {encoding} -*-\nvalue = 1\n"
    assert loaded(tmp_path, "from own_helper import value\n", own_helper=text).value == 1


def test_a_name_that_nobody_can_import_hides_nothing(tmp_path: Path) -> None:
    form = NormalForm("x = 1\n", files={"notes.v2.py": "", "os.path.py": "", "a-b.py": ""})
    assert load_module(tmp_path / "kbench_kernel.py", form).x == 1
