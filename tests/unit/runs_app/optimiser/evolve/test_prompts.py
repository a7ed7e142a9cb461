"""Every prompt renders, says what must hold, and holds no hidden workload."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest

from gpu_runner.data.verdict import Abi, DeviceKind, Language
from runs_app.optimiser.evolve import prompts
from runs_app.optimiser.evolve.commands import Prompt
from runs_app.optimiser.evolve.config import Problem
from runs_app.optimiser.evolve.judging import VERIFIERS
from runs_app.optimiser.evolve.prompts import PromptError, common, load, names, render
from runs_app.optimiser.evolve.verifiers import instructions, verify_prompt
from tests.unit.runs_app.optimiser.evolve.driving import a_problem

KINDS = {
    Language.CUDA: {"language": Language.CUDA, "device_kind": DeviceKind.CUDA},
    Language.CPP: {"language": Language.CPP, "device_kind": DeviceKind.CPU},
}
PROBLEMS = [
    a_problem(abi=Abi.C, **KINDS[Language.CUDA]),
    a_problem(abi=Abi.C, **KINDS[Language.CPP]),
    a_problem(abi=Abi.TORCH, signature="forward(x)", **KINDS[Language.CUDA]),
    a_problem(abi=Abi.TORCH, signature="forward(x)", **KINDS[Language.CPP]),
]
FORMS = {"form_kernel": "in one fenced block tagged", "form_edits": "<<<<<<< SEARCH"}
WRITE_CODE = [name for name in names() if load(name).placeholders & FORMS.keys()]


def rendered(name: str, problem: Problem) -> Prompt:
    asked = load(name).placeholders - common(problem).keys()
    return render(name, problem, **{key: f"[{key}]" for key in asked})


def text(prompt: Prompt) -> str:
    return "\n".join(message.content for message in prompt.messages)


@pytest.mark.parametrize(("name", "problem"), list(itertools.product(names(), PROBLEMS)))
def test_every_prompt_renders(name: str, problem: Problem) -> None:
    prompt = rendered(name, problem)
    assert (prompt.name, prompt.version >= 1) == (name, True)
    assert [message.role for message in prompt.messages] == ["system", "user"]
    assert "{{" not in text(prompt)
    assert "}}" not in text(prompt)
    for key in load(name).placeholders - common(problem).keys():
        assert f"[{key}]" in text(prompt)


@pytest.mark.parametrize(("name", "problem"), list(itertools.product(WRITE_CODE, PROBLEMS)))
def test_prompts_for_code_state_contract_command_and_limits(name: str, problem: Problem) -> None:
    said = text(rendered(name, problem))
    assert problem.signature in said
    assert f"`{problem.toolchain}`" in said
    assert "no other flags" in said
    assert "the kernel's source file and nothing else" in said
    assert "Nothing may be kept from one call for the next" in said
    assert ("PYBIND11_MODULE" in said) is (problem.abi is Abi.TORCH)
    assert ('extern "C"' in said) is (problem.abi is Abi.C)
    assert ("device memory" in said or "on the GPU" in said) is (
        problem.device_kind is DeviceKind.CUDA
    )
    assert ("OpenMP" in said) is (problem.device_kind is DeviceKind.CPU)
    (form,) = load(name).placeholders & FORMS.keys()
    assert FORMS[form] in said


def test_shapes_come_from_the_public_workloads_alone() -> None:
    """`Problem` has no field for hidden ones, and no prompt has a placeholder for them."""
    said = text(rendered("evolve", a_problem()))
    assert "- n1024: n=1024" in said
    fields = {field.name for field in dataclasses.fields(Problem)}
    assert not {name for name in fields if "hidden" in name}
    assert not {p for name in names() for p in load(name).placeholders if "hidden" in p}


def test_values_are_all_given_and_stay_as_they_are() -> None:
    given = {"strategy": "{{code}}", "times": "t"}
    for more, words in (({}, "needs a value for 'code'"), ({"code": "y", "more": "z"}, "'more'")):
        with pytest.raises(PromptError, match=words):
            render("code", PROBLEMS[0], **given, **more)
    with pytest.raises(PromptError, match="there is no prompt 'nonsense'"):
        render("nonsense", PROBLEMS[0])
    shown = text(render("code", PROBLEMS[1], code="int a[1] = {{0}}; {{task}}", **given))
    assert "{{code}}" in shown
    assert "int a[1] = {{0}}; {{task}}" in shown


@pytest.mark.parametrize(
    "content",
    [
        "## system\nx\n## user\ny\n",
        "---\nname: wrong\nversion: 1\n---\n## system\nx\n## user\ny\n",
        "---\nname: bad\nversion: one\n---\n## system\nx\n## user\ny\n",
        "---\nname: bad\nversion: 1\n---\n## user\ny\n",
    ],
)
def test_files_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setattr(prompts, "FOLDER", tmp_path)
    (tmp_path / "bad.md").write_text(content)
    with pytest.raises(PromptError):
        load("bad")


@pytest.mark.parametrize("verifier", VERIFIERS)
def test_verifiers_have_instructions_that_can_be_replaced(verifier: str) -> None:
    shipped = verify_prompt(PROBLEMS[0], verifier, "KERNEL", "KNOWN", "")
    assert (shipped.name, shipped.version) == (f"verify_{verifier}", 2)
    own = instructions(verifier, PROBLEMS[0])
    assert own in text(shipped)
    assert "JSON" in text(shipped)  # says not to use it
    tuned = verify_prompt(PROBLEMS[0], verifier, "KERNEL", "KNOWN", "LOOK CLOSELY")
    assert tuned.version == 0
    assert "LOOK CLOSELY" in text(tuned)
    assert own not in text(tuned)
