"""The pages about tasks, the sources that they show, and how kernels are built."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
import time
from pathlib import Path

import pytest
from django.test import Client
from django.utils.html import escape

from gpu_runner.data.flags import ALLOWED, EXAMPLE, FIXED, source_flags
from gpu_runner.data.formats import load_task
from gpu_runner.data.task import Abi
from gpu_runner.data.verdict import Direction
from runs_app.submitting.api import SubmissionIn
from tasks_app.pages import task_page
from tasks_app.templatetags import source
from tasks_app.templatetags.source import ShownFile
from tests import factories


@pytest.mark.django_db
def test_filters_choose_tasks(client: Client) -> None:
    factories.make_task_version()
    factories.make_task_version(name="dot", title="Dot product", scenario="llm")
    assert "/tasks/scale/" in client.get("/tasks/").content.decode()
    for address in ("?q=DOT+prod", "?scenario=llm"):
        text = client.get(f"/tasks/{address}").content.decode()
        assert "/tasks/dot/" in text
        assert "/tasks/scale/" not in text
    for address in ("?direction=backward", "?abi=torch", "?dtype=float16", "?q=%3Cscript%3E"):
        answer = client.get(f"/tasks/{address}")
        assert answer.status_code == 200
        assert "No task matches" in answer.content.decode()


@pytest.mark.django_db
def test_an_agent_reads_a_page_of_tasks_at_once(client: Client) -> None:
    names = [f"grouped_query_attention_paged_{number:02}" for number in range(61)]
    for name in names:
        factories.make_task_version(name=name)
    brief = client.get("/api/v1/tasks")
    assert len(brief.content) < 8192
    assert brief.json()[0] == {
        "name": names[0], "abi": "c", "dtype": "float32", "directions": ["forward"],
        "difficulty": "",
    }  # fmt: skip
    onward = brief["Link"].partition(">")[0][1:]
    assert [each["name"] for each in brief.json() + client.get(onward).json()] == names
    whole = client.get("/api/v1/tasks?fields=all").json()
    assert [each["title"] for each in whole] == ["Scale a vector"] * 61


@pytest.mark.django_db
def test_sources_of_shipped_kernels_come_when_asked_for(client: Client) -> None:
    factories.make_task_version()
    for path in ("scale", "scale/versions/1"):
        brief, whole = (
            client.get(f"/api/v1/tasks/{path}{more}").json() for more in ("", "?fields=all")
        )
        paths = {each["path"] for each in whole["document"]["kernels"]}
        assert paths
        assert paths <= whole["document"]["files"].keys()
        assert brief["document"]["files"].keys() == whole["document"]["files"].keys() - paths
        assert set(brief["left_out"]) == {f"document.files: {path}" for path in paths}
        assert whole["left_out"] == []
        told = [each["directions"] for each in brief["document"]["workloads"]]
        assert told == [["forward"]] * len(told)


@pytest.mark.django_db
def test_a_refused_name_tells_of_names_like_it(client: Client) -> None:
    for number in range(30):
        factories.make_task_version(name=f"task_{number:02}")
    factories.make_task_version(name="softmax")
    paths = ("tasks/softmx", "tasks/softmx/versions", "tasks/softmx/versions/1")
    paths += ("tasks/softmx/soundness", "tasks/softmx/judgements", "leaderboard?task=softmx")
    for path in paths:
        reason = client.get(f"/api/v1/{path}").json()["reason"]
        assert "like it: softmax" in reason, path
    token = factories.make_token(factories.make_user())
    body = {"task": "softmx", "source": "x", "language": "cpp"}
    run = {"task": "softmx", "strategy": "plain", "device": "cpu", "budget": {"usd": 1}}
    for path, sent in (("submissions", body), ("runs", run)):
        answer = client.post(
            f"/api/v1/{path}",
            sent,
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}"},
        )
        assert "like it: softmax" in answer.content.decode(), path


@pytest.mark.django_db
def test_hidden_workloads_are_a_number_only(client: Client) -> None:
    hostile = "<script>alert(1)</script> [x](javascript:alert(2))"
    factories.make_task_version(description=hostile)
    text = client.get("/tasks/scale/").content.decode()
    assert "<script>alert" not in text
    assert 'href="javascript' not in text
    assert "1 more hidden" in text
    assert factories.HIDDEN_WORKLOAD not in text
    assert "1777" not in text
    assert "void scale(float* out, const float* x, int N)" in text
    assert client.get("/tasks/unknown/").status_code == 404


def test_a_torch_task_shows_the_arguments_of_its_reference() -> None:
    files = {"reference.py": "def forward_fn(x, weight):\n    return x\n"}
    data = factories.make_task(abi=Abi.TORCH, signature="", files=files, kernels=())
    [entrance] = task_page.entrances(data)
    assert entrance.declaration == "forward(x, weight)"
    assert "torch::Tensor x, torch::Tensor weight" in task_page.starter(data, Direction.FORWARD)
    for text in ("def forward_fn(", "\0", "(" * 5000, "forward_fn = 1"):  # which is no Python
        files = {"reference.py": text}
        data = factories.make_task(abi=Abi.TORCH, signature="", files=files, kernels=())
        [entrance] = task_page.entrances(data)
        assert entrance.declaration == "forward(the reference's arguments, in order)"
    files = {"reference.py": "def forward_scale(x):\n    return x\n"}
    own = factories.make_task(files=files, kernels=())
    assert "`forward_scale`" in task_page.tolerance_text(own)
    assert "root mean square" in task_page.tolerance_text(factories.make_task())
    narrow = factories.make_task(dtype="float16")
    assert "7.9e-31" in task_page.tolerance_text(own)
    assert "7.9e-31" not in task_page.tolerance_text(narrow)


def file(text: str, language: str) -> ShownFile:
    return ShownFile(name="kernel.cpp", text=text, language=language, anchor="L")


def test_highlighting_escapes_and_numbers_lines() -> None:
    html = source.highlighted(file("a < b;\n</pre><script>x</script>\n", "cuda"))
    assert "<script>" not in html
    assert 'id="L-2"' in html
    assert 'id="L-5"' in source.highlighted(file("\n\n" + "int a;\n" * 3, "cpp"))
    assert "style=" not in html, "the content policy forbids inline styles"


@pytest.mark.parametrize("text", ["\n" * 60_000, "a::" * 20_000, "(" * 60_000, "int f(" * 10_000])
def test_no_source_holds_a_page_up(text: str) -> None:
    """The lexer alone takes minutes over sixty thousand empty lines."""
    began = time.process_time()
    source.highlighted(file(text, "cuda"))
    assert time.process_time() - began < 5


def test_a_kernel_in_python_is_no_part_of_the_reference() -> None:
    files = {"reference.py": "1", "task.toml": "2", "kernels/best.py": "3"}
    assert task_page.reference_files(files) == [("reference.py", "1")]


@pytest.mark.django_db
def test_the_page_names_compilers_devices_and_flags(client: Client) -> None:
    factories.make_task_version()
    text = client.get("/tasks/scale/").content.decode()
    assert "no runner at the moment" in text
    factories.beat(
        device="nvidia-h100", device_kind="cuda", device_name="NVIDIA H100 80GB HBM3",
        compiler="nvcc 13.0 with g++ 12.2.0", architecture="sm_90a",
    )  # fmt: skip
    text = client.get("/tasks/scale/").content.decode()
    for words in ("NVIDIA H100 80GB HBM3", "nvcc 13.0 with g++ 12.2.0", "sm_90a", "C++20"):
        assert escape(words) in text
    plain = text.replace("<wbr>", "")
    for language in FIXED:
        assert EXAMPLE[language] in plain
        assert source_flags(f"{EXAMPLE[language]}\n", language)  # it may be asked for
        assert all(escape(allowed.form) in plain for allowed in ALLOWED[language])


_ROOT = Path(__file__).resolve().parents[4]
_SIGNATURE = load_task(_ROOT / "tasks_app/catalog/vector_add").signature


def _document() -> str:
    text = (_ROOT / "docs/kernels.md").read_text(encoding="utf-8")
    return textwrap.dedent(text.split("```c++\n", 1)[1].split("```", 1)[0])


def _schema() -> str:
    examples = SubmissionIn.model_fields["source"].examples
    assert examples
    return str(examples[0])


@pytest.mark.django_db
@pytest.mark.parametrize("source", [_document(), _schema()], ids=["kernels.md", "OpenAPI"])
def test_example_defines_the_declared_function(source: str) -> None:
    """It has the signature, and compiles after the declaration that precedes every kernel."""
    assert f'extern "C" {_SIGNATURE} {{' in " ".join(source.split())
    compiler = shutil.which("g++")
    assert compiler, "g++ is needed to compile kernels"
    subprocess.run(
        [compiler, "-fopenmp", "-fsyntax-only", "-Werror", "-x", "c++", "-"],
        input=f'extern "C" {_SIGNATURE};\n{source}',
        text=True,
        check=True,
    )
