"""The workbench: what it opens with, what a script gets, the attempts, what nobody may read."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from gpu_runner.data.environment import Cache, Environment, Hardware
from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.task import ShippedKernel
from gpu_runner.data.verdict import DeviceKind, Language, Verdict
from runs_app.models import Evaluation, Runner, Submission
from runs_app.submitting.services import rerun
from runs_app.submitting.workbench.attempts import Attempt, attempts
from tasks_app.models import TaskVersion
from tests import factories
from tests.unit.runs_app.core.integrity.suspicious import held
from tests.unit.runs_app.submitting.test_pages import form

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

HTMX = {"HTTP_HX_REQUEST": "true"}
LOG = "kernel.cpp:1:14: error: 'vec' was not declared in this scope\n"


@pytest.fixture
def ada() -> User:
    return factories.make_user(username="ada")


@pytest.fixture
def signed_in(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def shown(client: Client, address: str) -> str:
    """Text of a page that is there."""
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def source_of(page: str) -> str:
    """What the editor holds."""
    found = re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)
    assert found is not None
    return found[1].strip()


def test_the_task_stands_beside_the_editor(client: Client) -> None:
    factories.make_task_version()
    page = shown(client, "/submit/?task=scale")
    assert "void scale(float* out, const float* x, int N)" in page
    assert "N=256" in page
    assert "1777" not in page, "a hidden workload is shown"
    assert "1 more is hidden" in page
    assert "kbench-good" in page
    assert 'id="starter"' in page
    assert 'href="/leaderboard/?task=scale&amp;device=cpu">Its board</a>' in page
    assert client.get("/submit/task/?task=nothing").status_code == 404
    assert "Choose a task" in shown(client, "/submit/task/")


def test_only_kernels_that_the_device_runs_are_offered_each_with_its_language(
    client: Client,
) -> None:
    texts = {
        "good.cpp": factories.SOURCE,
        "triton.py": "import triton\n",
        "portable.py": "import torch\n",
    }
    kernels = tuple(
        ShippedKernel(path=f"kernels/{name}", agent=name, language=Language(language))
        for name, language in zip(texts, ("cpp", "python", "python"), strict=True)
    )
    files = {f"kernels/{name}": text for name, text in texts.items()}
    factories.make_task_version(kernels=kernels, files={"reference.py": "", **files})
    factories.make_cpu()
    factories.make_device()
    for device, offered, compiled in (
        ("cpu", {"good.cpp", "portable.py"}, "C++"),
        ("nvidia-h200", {"triton.py", "portable.py"}, "CUDA C++"),
    ):
        brief = shown(client, f"/submit/task/?task=scale&device={device}")
        assert {name for name in texts if f"{name}'s kernel" in html.unescape(brief)} == offered
        starter = brief.split("data-starter>the starter</a>")[1].split("</li>")[0]
        assert f">{compiled}</span>" in starter
        assert brief.count(">Python</span>") == len(offered - {"good.cpp"}) + 1


def test_a_python_module_is_begun_and_entered(signed_in: Client) -> None:
    factories.make_task_version()
    page = shown(signed_in, "/submit/?task=scale&kernel=starter.py")
    assert "def forward(x, N):" in source_of(page)
    assert "# returns out" in source_of(page)
    assert '<option value="python" selected>Python</option>' in page
    assert 'id="python-starter"' in page
    source = "import torch\ndef forward(x, N):\n    return x * 2\n"
    answer = signed_in.post("/submit/", form(language="python", source=source), **HTMX)
    assert answer.status_code == 200
    assert "it only calls libraries" in answer.content.decode()
    upload = SimpleUploadedFile("mine.py", b"def forward(x, N):\n    return x\n")
    signed_in.post("/submit/", form(source="", file=upload))
    assert [each.language for each in Submission.objects.all()] == ["python"] * 2
    factories.make_runner(packages={"numba": ""})
    source = "import numba\ndef forward(x, N):\n    return x\n"
    answer = signed_in.post("/submit/", form(language="python", source=source), **HTMX)
    assert answer.status_code == 422
    assert '<a href="#id_source">' in answer.content.decode()
    assert Submission.objects.count() == 2


def test_a_nul_in_the_source_is_named_with_its_line(signed_in: Client) -> None:
    factories.make_task_version()
    page = signed_in.post("/submit/", form(source="int a;\n\0"), **HTMX).content.decode()
    assert "contains a NUL character in line 2, column 1: remove it" in page
    assert "Paste the kernel" not in page
    assert not Submission.objects.exists()


def test_a_module_for_a_gpu_opens_with_one(signed_in: Client) -> None:
    factories.make_cpu()
    factories.make_device()
    sources = {"triton": "import triton\n", "torch": "import torch\n"}
    for word, device in (("torch", "cpu"), ("triton", "nvidia-h200")):
        kernel = factories.make_submission(
            user=User.objects.get(username="ada"), source=sources[word], language="python",
            device="cpu",
        )  # fmt: skip
        kernel.evaluations.all().delete()
        page = shown(signed_in, f"/submit/?submission={kernel.pk}")
        assert re.search(rf'<option value="{device}"[^>]* selected>', page), word


def test_it_opens_with_a_kernel_of_the_task(client: Client) -> None:
    factories.make_task_version()
    factories.make_cpu()
    page = shown(client, "/submit/?task=scale&kernel=kernels/good.cpp")
    assert "out[0] = N * x[0];" in source_of(page)
    addresses = [html.unescape(found) for found in re.findall(r'data-source="([^"]+)"', page)]
    assert len(addresses) >= 2
    for address in addresses:
        answer = client.get(address)
        assert (answer.status_code, "<html" in answer.content.decode()) == (200, False), address
    text = client.get("/submit/source/?task=scale&kernel=kernels/good.cpp")
    assert text.content.decode() == factories.SOURCE
    assert text["Content-Type"].startswith("text/plain")
    assert "// your kernel" in source_of(shown(client, "/submit/?task=scale&kernel=starter"))


def test_what_nobody_may_read_opens_nothing(signed_in: Client, ada: User) -> None:
    version = factories.make_task_version()
    for query in (
        "task=scale&kernel=notes.json",
        "task=scale&kernel=../secret",
        "task=nothing&kernel=starter",
        "submission=none",
        f"submission={UUID(int=0)}",
    ):
        assert signed_in.get(f"/submit/?{query}").status_code == 404
        refused = 404 if "kernel" in query else 400  # it knows no parameter `submission`
        assert signed_in.get(f"/submit/source/?{query}").status_code == refused
    mine = factories.make_submission(user=ada, private=True, task_version=version)
    assert signed_in.get(f"/submit/?submission={mine.pk}").status_code == 200
    assert Client().get(f"/submit/?submission={mine.pk}").status_code == 404
    signed_in.force_login(factories.make_user())
    assert signed_in.get(f"/submit/?submission={mine.pk}").status_code == 404


def test_it_opens_with_a_submission_and_its_verdict(client: Client) -> None:
    build = BuildReport(
        ok=False, cached=False, duration_s=0.1, log=LOG, command="", compiler="g++", digest=""
    )
    done = factories.make_finished_evaluation(Verdict.COMPILE_ERROR, result={"build": build})
    page = shown(client, f"/submit/?submission={done.submission_id}")
    assert "out[0] = N * x[0];" in source_of(page)
    assert f'data-opening="submission:{done.submission_id}"' in page
    assert '<option value="scale" selected>' in page
    assert "Compile error" in page
    assert "&#x27;vec&#x27; was not declared" in page or "'vec' was not declared" in page
    marks = re.search(r'<script id="diagnostics"[^>]*>(.*?)</script>', page)
    assert marks is not None
    assert '"line": 1, "column": 14, "severity": "error"' in marks[1]


def test_a_source_that_no_device_takes_says_so(client: Client) -> None:
    version = factories.make_task_version()
    factories.make_runner()
    for language, is_told in (("cuda", True), ("cpp", False), ("python", False)):
        made = factories.make_submission(task_version=version)
        Submission.objects.filter(pk=made.pk).update(language=language)
        page = shown(client, f"/submit/?submission={made.pk}")
        assert ("No device on this site can run" in page) is is_told, language


def test_a_script_gets_the_console(signed_in: Client) -> None:
    factories.make_task_version()
    answer = signed_in.post("/submit/", form(), **HTMX)
    submission = Submission.objects.get()
    assert answer.status_code == 200
    assert answer["HX-Replace-Url"] == f"/submit/?submission={submission.pk}"
    text = answer.content.decode()
    assert f'data-submission="{submission.pk}"' in text
    assert 'id="live"' in text
    assert "<html" not in text
    left = text[text.index('id="quota-left"') :].split("</span>")[0]
    assert "1 under way" in left, "what is left counts this one"
    answer = signed_in.post("/submit/", form(source=""), **HTMX)
    assert (answer.status_code, answer["HX-Retarget"]) == (422, "#refusal")
    authors = {"written_by": "agent", "agent": "<b>", "language_model": "<i>"}
    said = signed_in.post("/submit/", form(**authors), **HTMX).content.decode()
    for name, label in (("agent", "Agent"), ("language_model", "Language model")):
        assert f'<a href="#id_{name}">{label}</a>: Must start with' in said, "all at once"
    answer = Client().post("/submit/", form(), **HTMX)
    assert answer["HX-Redirect"].startswith("/sign-in/?next=/submit/%3Ftask%3Dscale")
    assert Submission.objects.count() == 1


def test_who_was_signed_out_meanwhile_is_told_where_the_kernel_is(signed_in: Client) -> None:
    factories.make_task_version()
    assert 'name="signed_in"' in shown(signed_in, "/submit/?task=scale")
    assert 'name="signed_in"' not in shown(Client(), "/submit/?task=scale")
    attempt = factories.make_submission()
    for path, sent in (
        ("/submit/", form(signed_in="1")),
        (f"/submit/rank/{attempt.pk}/", {"mode": "quick"}),
    ):
        other = Client()
        answer = other.post(path, sent, **HTMX)
        said = "You were signed out. Your kernel is saved in this browser."
        assert said in shown(other, answer["HX-Redirect"])
    fresh = Client()
    answer = fresh.post("/submit/", form(), **HTMX)
    assert "signed out" not in shown(fresh, answer["HX-Redirect"])


def test_one_may_start_from_the_leader(signed_in: Client) -> None:
    version = factories.make_task_version()
    best = factories.make_finished_evaluation(
        task_version=version, mode="ranked", result={"latency_ns": 10.0}
    )
    hidden = factories.make_finished_evaluation(task_version=version, private=True, mode="ranked")
    text = shown(signed_in, "/submit/task/?task=scale&device=cpu&direction=forward")
    assert "the leader" in text
    assert f"/submissions/{best.submission_id}/source/" in text
    assert str(hidden.submission_id) not in text


PART = "/submit/attempts/?task=scale&device=cpu&direction=forward"


def tried(ada: User, version: TaskVersion, hour: int, **overrides: Any) -> Evaluation:
    """A finished attempt of hers, at some hour."""
    at = factories.NOW + timedelta(hours=hour)
    values: dict[str, Any] = {"mode": "quick", "source": f"{factories.SOURCE}// {hour}\n"}
    return factories.make_finished_evaluation(
        **{**values, "task_version": version, "user": ada, "now": at, **overrides}
    )


def rows_of(version: TaskVersion, user: User) -> list[Attempt]:
    """Her attempts on the CPU, newest first."""
    return list(attempts(version, "forward", factories.make_cpu(), user).rows)


def test_each_says_what_it_changed_since_the_one_before(ada: User) -> None:
    version = factories.make_task_version()
    for hour in (1, 2, 3):
        tried(ada, version, hour)
    tried(factories.make_user(), version, 4)
    rows = rows_of(version, ada)
    assert [row.number for row in rows] == [3, 2, 1]
    assert [row.change and (row.change.added, row.change.removed) for row in rows] == [
        (1, 1), (1, 1), None,
    ]  # fmt: skip
    assert len(attempts(version, "forward", factories.make_cpu(), ada).speedups) == 3


def test_what_was_right_in_a_quick_run_may_be_ranked_once(ada: User) -> None:
    version = factories.make_task_version()
    tried(ada, version, 1)
    tried(ada, version, 2, verdict=Verdict.WRONG_RESULT)
    tried(ada, version, 3, private=True)
    ranked = tried(ada, version, 4, mode="ranked")
    tried(ada, version, 5, source=ranked.submission.source)
    assert [row.may_rank for row in rows_of(version, ada)] == [False] * 4 + [True]


def test_an_attempt_keeps_its_times_of_other_modes(signed_in: Client, ada: User) -> None:
    version = factories.make_task_version()
    first = tried(ada, version, 1, result={"latency_ns": 1500.0})
    ranked = rerun(submission=first.submission, user=ada, mode="ranked", now=factories.later(9000))
    factories.finish(ranked)
    [row] = rows_of(version, ada)
    assert (row.evaluation, list(row.others)) == (ranked, [first])
    assert row.spread == Evaluation.objects.get(pk=ranked.pk).score_spread
    assert "1.50 µs" in signed_in.get(PART).content.decode()


def test_an_attempt_in_quarantine_says_so_and_is_not_ranked(signed_in: Client, ada: User) -> None:
    held(user=ada, mode="quick", task_version=factories.make_task_version())
    text = signed_in.get(PART).content.decode()
    assert "In quarantine" in text
    assert "Rank attempt" not in text
    assert "faster than" not in text


def test_the_newest_evaluation_of_a_submission_is_shown(signed_in: Client, ada: User) -> None:
    version = factories.make_task_version()
    first = tried(ada, version, 1)
    ranks = f"/submit/rank/{first.submission_id}/"
    assert "Rank attempt 1<" in signed_in.get(PART).content.decode()
    beside = signed_in.get(f"/submit/?submission={first.submission_id}").content.decode()
    assert beside.count(f'hx-post="{ranks}"') == 2, "the profile leaves the workbench"
    own_page = signed_in.get(f"/submissions/{first.submission_id}/").content.decode()
    assert f'hx-post="{ranks}"' not in own_page
    answer = signed_in.post(ranks, {"device": "cpu"}, **HTMX)
    assert answer.status_code == 200
    assert answer["HX-Replace-Url"] == f"/submit/?submission={first.submission_id}"
    text = answer.content.decode()
    assert 'id="attempts" hx-swap-oob' in text
    assert "Rank attempt" not in text
    [row] = rows_of(version, ada)
    assert (row.evaluation.mode, row.evaluation.status) == ("ranked", "QUEUED")
    assert f'data-rank="{first.submission_id}"' in text
    again = {"device": "cpu", "mode": "profile"}
    answer = signed_in.post(f"/submit/rank/{first.submission_id}/", again, **HTMX)
    assert "profile" in answer.content.decode()
    assert Submission.objects.filter(author=ada).count() == 1
    other = factories.make_finished_evaluation(mode="quick", task_version=version)
    answer = signed_in.post(f"/submit/rank/{other.submission_id}/", {}, **HTMX)
    assert (answer.status_code, answer["HX-Retarget"]) == (422, "#refusal")
    answer = Client().get(PART)
    assert (answer.status_code, answer.content.decode().strip()) == (200, "")


def test_a_restored_attempt_brings_its_console_alone(signed_in: Client, ada: User) -> None:
    done = tried(ada, factories.make_task_version(), 1)
    page = signed_in.get(PART).content.decode()
    assert f'data-source="/submissions/{done.submission_id}/source/"' in page
    assert 'id="expected-here" type="application/json">{"device": "cpu", "modes": {"quick":' in page
    assert "left today" in page
    answer = signed_in.get(f"/submit/?submission={done.submission_id}", **HTMX)
    assert answer["HX-Replace-Url"] == f"/submit/?submission={done.submission_id}"
    text = answer.content.decode()
    assert 'id="live"' in text
    assert "<html" not in text


def test_a_cpu_says_what_it_gives_a_kernel_and_ones_last_attempt_is_a_start(
    signed_in: Client, ada: User
) -> None:
    version = factories.make_task_version()
    assert "your last attempt" not in shown(signed_in, "/submit/?task=scale")
    hardware = Hardware(
        features=("avx2", "avx512f"), caches=(Cache(level=1, bytes=49152, line=64),)
    )
    environment = Environment(device_kind=DeviceKind.CPU, measured_cpus=1, hardware=hardware)
    result = {"environment": environment}
    last = factories.make_finished_evaluation(task_version=version, user=ada, result=result)
    factories.make_runner()
    Runner.objects.update(compiler="g++")
    said = "Kernels get 1 processor (threads don&#x27;t help), AVX-512, 48 KiB L1d."
    for address in ("/submit/?task=scale", "/submit/task/?task=scale&device=cpu", "/tasks/scale/"):
        page = shown(signed_in, address)
        assert said in page
        is_bench = address.startswith("/submit")
        assert (f'data-opening="submission:{last.submission_id}"' in page) is is_bench
