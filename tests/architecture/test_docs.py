"""The documents name everything that a reader must be able to look up."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from gpu_runner.data.event import EventKind
from gpu_runner.data.flags import ALLOWED, FIXED
from gpu_runner.data.formats import find_task
from gpu_runner.data.static import MODULE_RULES, RULES, module_suspicions
from gpu_runner.data.symptom import Symptom
from gpu_runner.data.verdict import Language, Mode, Stage, Verdict

ROOT = Path(__file__).parents[2]
ENVIRONMENT = re.compile(r"\b(KBENCH_[A-Z_]+|REDIS_URL|DATABASE_URL)\b")


def text_of(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("word", [*Verdict, *Mode, *Stage, *EventKind, *Symptom])
def test_every_word_of_a_result_is_explained(word: str) -> None:
    assert f"`{word}`" in text_of("docs/results.md")


def test_every_setting_is_explained() -> None:
    read = set()
    for folder in ("kbench_web", "gpu_runner", "kbench_client"):
        for path in (ROOT / folder).rglob("*.py"):
            read |= set(ENVIRONMENT.findall(path.read_text()))
    explained = set(re.findall(r"^\| `([A-Z_]+)`", text_of("docs/settings.md"), re.MULTILINE))
    assert read
    assert explained == read


@pytest.mark.parametrize("language", FIXED)
def test_every_flag_of_a_kernel_is_explained(language: Language) -> None:
    text = text_of("docs/kernels.md")
    for flag in FIXED[language]:
        assert flag in text or flag == "-std=c++20"
    for allowed in ALLOWED[language]:
        name = re.split(r"[=,]| to ", allowed.form.removeprefix("-f[no-]"))[0]
        assert name in text, allowed.form


def test_the_python_example_would_not_wait_in_quarantine() -> None:
    source = re.findall(r"```python\n(.*?)```", text_of("docs/kernels.md"), re.DOTALL)[0]
    assert module_suspicions(textwrap.dedent(source), find_task("vector_add")) == ()


def test_every_static_rule_is_explained() -> None:
    explained = set(re.findall(r"^\| `([a-z-]+)`", text_of("docs/static-checks.md"), re.MULTILINE))
    assert {rule.name for rule in (*RULES, *MODULE_RULES)} <= explained


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", text_of("README.md")))
    assert {"up", "test", "lint", "install"} <= named <= targets


def test_the_first_screen_says_how_to_start() -> None:
    first_screen = "\n".join(text_of("README.md").splitlines()[:40])
    assert "make up" in first_screen
    assert "make test" in first_screen


def test_every_command_is_described_by_itself() -> None:
    listing = subprocess.run(
        ["git", "ls-files", "*/management/commands/*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    for name in listing:
        if not name.endswith("__init__.py"):
            assert re.search(r"^    help = ", text_of(name), re.MULTILINE), name


def test_every_path_of_the_contributing_page_exists() -> None:
    paths = [
        name
        for name in re.findall(r"`([\w./-]+)`", text_of("CONTRIBUTING.md"))
        if "/" in name and not name.startswith("/")
    ]
    assert len(paths) > 15
    for name in paths:
        # Names such as parts/ alone stand for a folder inside another one.
        assert (ROOT / name).exists() or name in ("kernels/", "parts/"), name
