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
from tasks_app.templatetags import display, source
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
def test_without_tasks_the_page_says_how_to_load_them(client: Client) -> None:
    assert "load_tasks" in client.get("/tasks/").content.decode()


@pytest.mark.django_db
def test_hidden_workloads_are_a_number_only(client: Client) -> None:
    factories.make_task_version()
    text = client.get("/tasks/scale/").content.decode()
    assert "1 more is hidden" in text
    assert factories.HIDDEN_WORKLOAD not in text
    assert "1777" not in text
    assert "void scale(float* out, const float* x, int N)" in text
    assert client.get("/tasks/unknown/").status_code == 404


@pytest.mark.django_db
def test_a_description_cannot_bring_markup(client: Client) -> None:
    factories.make_task_version(description="<script>alert(1)</script> [x](javascript:alert(2))")
    text = client.get("/tasks/scale/").content.decode()
    assert "<script>alert" not in text
    assert 'href="javascript' not in text


def test_a_torch_task_shows_the_arguments_of_its_reference() -> None:
    files = {"reference.py": "def forward_fn(x, weight):\n    return x\n"}
    data = factories.make_task(abi=Abi.TORCH, signature="", files=files, kernels=())
    [entrance] = task_page.entrances(data)
    assert entrance.declaration == "forward(x, weight)"
    assert "torch::Tensor x, torch::Tensor weight" in task_page.starter(data, Direction.FORWARD)


@pytest.mark.parametrize("text", ["def forward_fn(", "\0", "(" * 5000, "forward_fn = 1"])
def test_a_reference_that_is_no_python_breaks_nothing(text: str) -> None:
    files = {"reference.py": text}
    data = factories.make_task(abi=Abi.TORCH, signature="", files=files, kernels=())
    [entrance] = task_page.entrances(data)
    assert entrance.declaration == "forward(the reference's arguments, in order)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1234, "0.123 ns"), (999.4, "999 ns"), (999.6, "1.00 µs"), (12_345, "12.3 µs"),
        (1_500_000, "1.50 ms"), (2.5e9, "2.50 s"), (3.6e12, "3600 s"), (None, "–"),
    ],
)  # fmt: skip
def test_times_have_three_digits_and_a_unit(value: float | None, text: str) -> None:
    assert display.duration_text(value) == text


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ((1.5,), "faster"), ((0.5,), "slower"), ((1.01,), "neutral"),
        ((1.5, 0.9, 2.0), "neutral"), ((1.01, 1.005, 1.02), "faster"),
    ],
)  # fmt: skip
def test_a_speedup_within_the_noise_is_neutral(numbers: tuple[float, ...], kind: str) -> None:
    html = display.speedup(*numbers)
    assert f'class="speedup {kind}"' in html
    assert "×" in html
    assert 'class="visually-hidden"' in html, "colour must not be the only sign"


def test_small_words() -> None:
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


def test_highlighting_escapes_and_numbers_lines() -> None:
    html = source.highlight("a < b;\n</pre><script>x</script>\n", "cuda")
    assert "<script>" not in html
    assert 'id="L-2"' in html
    assert "style=" not in html, "the content policy forbids inline styles"


@pytest.mark.parametrize("text", ["\n" * 60_000, "a::" * 20_000, "(" * 60_000, "int f(" * 10_000])
def test_no_source_holds_a_page_up(text: str) -> None:
    """The lexer alone takes minutes over sixty thousand empty lines."""
    began = time.process_time()
    source.highlight(text, "cuda")
    assert time.process_time() - began < 5


def test_highlighting_keeps_every_line() -> None:
    text = "\n\n" + "int a;\n" * 3
    html = source.highlight(text, "cpp")
    assert 'id="L-5"' in html


def test_templates_can_use_what_a_result_holds() -> None:
    measurement = factories.make_measurement(2000.0, spread=0.05)
    template = Template("{% load display %}{{ m|half_width }} {{ m.time_ns|duration_text }}")
    assert template.render(Context({"m": measurement})) == "±5.0 % 2.00 µs"


def test_the_tolerance_names_the_scale_that_the_reference_defines() -> None:
    files = {"reference.py": "def forward_scale(x):\n    return x\n"}
    own = factories.make_task(files=files, kernels=())
    assert "`forward_scale`" in task_page.tolerance_text(own)
    assert "root mean square" in task_page.tolerance_text(factories.make_task())
    assert "Errors below 7.9e-31 don't count" in task_page.tolerance_text(own)
    narrow = factories.make_task(dtype="float16")
    assert "Errors below" not in task_page.tolerance_text(narrow)
