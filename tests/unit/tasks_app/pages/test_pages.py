"""The pages about tasks, and numbers in words."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.template import Context, Template
from django.test import Client
from django.utils import timezone

from gpu_runner.data.task import Abi
from gpu_runner.data.verdict import Direction
from tasks_app.pages import task_page
from tasks_app.pages.task_filter import distance
from tasks_app.templatetags import display, source
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


def test_a_speedup_within_the_noise_is_neutral() -> None:
    for numbers, kind in (
        ((1.5,), "faster"), ((0.5,), "slower"), ((1.01,), "neutral"),
        ((1.5, 0.9, 2.0), "neutral"), ((1.01, 1.005, 1.02), "faster"),
    ):  # fmt: skip
        html = display.speedup(*numbers)
        assert f'class="speedup {kind}"' in html
        assert "×" in html
        assert 'class="visually-hidden"' in html, "colour must not be the only sign"
    for value, spread, sign in (
        (0.99, None, "≈"), (0.97, None, "▼"), (0.97, 0.07, "≈"), (1.5, 0.5, "≈"), (1.5, 0.1, "▲"),
    ):  # fmt: skip
        assert sign in display.speedup(value, spread=spread)


def test_small_words() -> None:
    for value, text in (
        (0.1234, "0.123 ns"), (999.4, "999 ns"), (999.6, "1.00 µs"), (12_345, "12.3 µs"),
        (1_500_000, "1.50 ms"), (2.5e9, "2.50 s"), (3.6e12, "3600 s"), (None, "–"),
    ):  # fmt: skip
        assert display.duration_text(value) == text
    measurement = factories.make_measurement(2000.0, spread=0.05)
    template = Template("{% load display %}{{ m|half_width }} {{ m.time_ns|duration_text }}")
    assert template.render(Context({"m": measurement})) == "±5.0 % 2.00 µs"
    assert display.percent(0.4256) == "42.6 %"
    assert display.percent(0.0) == "0 %"
    assert display.percent(1.0) == "100 %"
    assert display.size(1536) == "1.50 KiB"
    assert display.amount(20_480, "FLOP") == "20.5 kFLOP"
    assert display.scientific(1.9e-06) == "1.9e-6"
    assert display.error(3.0) == "✗ 3"
    assert display.period(59) == "59 s"
    assert display.period(300) == "5 min"
    assert display.period(-0.2) == "0 s"
    assert "3 days ago" in display.ago(timezone.now() - timedelta(days=3.5))


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


@pytest.mark.parametrize(
    ("asked", "order"),
    [
        ("softmax", ["softmax", "softmax_attention", "cross_entropy"]),
        ("Softmax attention", ["softmax_attention", "cross_entropy", "softmax"]),
        ("", ["cross_entropy", "softmax_attention", "softmax"]),
    ],
)
def test_what_was_searched_for_comes_first(asked: str, order: list[str]) -> None:
    named = {
        "cross_entropy": "Cross entropy of a softmax",
        "softmax_attention": "Softmax attention",
        "softmax": "Softmax",
    }
    found = sorted(named.items(), key=lambda pair: distance(asked, *pair))
    assert [name for name, _ in found] == order


def test_a_kernel_in_python_is_no_part_of_the_reference() -> None:
    files = {"reference.py": "1", "task.toml": "2", "kernels/best.py": "3"}
    assert task_page.reference_files(files) == [("reference.py", "1")]
