"""The pages about tasks, and the sources that they show."""

from __future__ import annotations

import time

import pytest
from django.test import Client

from gpu_runner.data.task import Abi
from gpu_runner.data.verdict import Direction
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
def test_hidden_workloads_are_a_number_only(client: Client) -> None:
    hostile = "<script>alert(1)</script> [x](javascript:alert(2))"
    factories.make_task_version(description=hostile)
    text = client.get("/tasks/scale/").content.decode()
    assert "<script>alert" not in text
    assert 'href="javascript' not in text
    assert "1 more is hidden" in text
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
