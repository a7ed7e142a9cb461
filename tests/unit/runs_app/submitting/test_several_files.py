"""Submissions of several files: over the API, stored, shown, compared and carried on."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from django.test import Client

from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Verdict
from runs_app.models import Submission
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

SOURCE = f'#include "in/sum.h"\n{make.SOURCE}'
FILES = {"in/sum.h": "#pragma once\nfloat sum(float a, float b);\n", "b.hpp": "int b;\n"}


@pytest.fixture
def token() -> str:
    make.make_task_version()
    return make.make_token(make.make_user(username="ada"))


def post(token: str, **changes: Any) -> Any:
    body = {"task": "scale", "source": SOURCE, "language": "cpp", "files": FILES, **changes}
    return Client().post(
        "/api/v1/submissions",
        json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )


def entered(token: str, **changes: Any) -> Submission:
    created = post(token, **changes)
    assert created.status_code == 201, created.content
    return Submission.objects.get(pk=created.json()["id"])


def test_the_api_takes_files_and_shows_them(token: str) -> None:
    submission = entered(token, entry="main.cpp")
    shown = Client().get(f"/api/v1/submissions/{submission.pk}").json()
    assert (shown["source"], shown["entry"], shown["files"]) == (SOURCE, "main.cpp", FILES)
    assert submission.digest == submission.solution.digest()
    windows = {name: text.replace("\n", "\r\n") for name, text in FILES.items()}
    assert entered(token, entry="main.cpp", files=windows).digest == submission.digest
    assert entered(token).entry == "kernel.cpp"
    single = entered(token, entry="main.cpp", files={})
    assert (single.entry, single.files) == ("", {})
    assert single.digest == Solution(source=SOURCE, language=Language.CPP).digest()


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"files": {"../x.h": ""}}, "files", "'../x.h' must be a relative path"),
        ({"files": {"": ""}}, "files", "'' has no name"),
        ({"files": {"x.so": ""}}, "files", "'x.so' must end with one of"),
        ({"files": {f"a{n}.h": "" for n in range(32)}}, "files", "has 33 files"),
        ({"files": {"a.h": "x\0"}}, "files", "a NUL character in line 1, column 2"),
        ({"files": {"a\0.h": "x"}}, "files", "a NUL character"),
        ({"files": {"a.h": 5}}, "files", "string"),
        ({"files": ["a.h"]}, "files", "must be a JSON object"),
        ({"files": {"a.h": "x" * 1_000_000, "b.h": "x" * 1_000_000}}, "files", "together have"),
        ({"entry": "main.cu"}, "entry", "'main.cu' must end with .cpp"),
        (
            {"files": {"torch.py": ""}, "language": "python", "device": "cpu"},
            "files",
            "'torch.py' would hide Python's or a library's module 'torch'",
        ),
    ],
)
def test_bad_files_are_refused_by_name(
    changes: dict[str, Any], field: str, words: str, token: str
) -> None:
    response = post(token, **changes)
    assert response.status_code == 422, response.content
    assert response.json()["field"].partition(".")[0] == field
    assert words in response.json()["reason"]
    assert not Submission.objects.exists()


def test_a_helper_decides_where_a_module_goes(token: str) -> None:
    helper = {"helper.py": "import triton\n@triton.jit\ndef own(): pass\n"}
    source = "import helper\ndef forward(x, N):\n    return x\n"
    refused = post(token, source=source, language="python", files=helper)
    assert "it imports triton" in refused.json()["reason"]
    created = post(token, source=source, language="python", files=helper, device="cpu")
    assert created.json()["remark"] == ""


def test_the_page_shows_every_file_and_links_into_it(client: Client, token: str) -> None:
    submission = entered(token, entry="main.cpp")
    log = "in/sum.h:2:3: error: no sum\nmain.cpp(1): error: no main\nxmain.cpp:1:1: error: other\n"
    build = BuildReport(
        ok=False, cached=False, duration_s=1.0, log=log, command="", compiler="", digest=""
    )
    reason = "directives: contains the directive '#line'"
    found = Suspicion(check=Check.SOURCE, reason=reason, line=2, file="in/sum.h")
    told = {"verdict": Verdict.COMPILE_ERROR, "build": build, "suspicions": (found,)}
    make.finish(submission.evaluations.get(), **told)
    client.force_login(submission.author)
    page = client.get(submission.get_absolute_url()).content.decode()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    for name in ("main.cpp", "in/sum.h", "b.hpp"):
        assert f'<summary class="mono">{name}</summary>' in page
    assert 'id="F2-L-2"' in page
    assert '<a href="#F2-L-2">in/sum.h:2</a>' in page
    assert '<a href="#L-1">main.cpp(1</a>' in page
    assert "in/sum.h, line 2" in text
    assert 'href="#F1-L' not in page.replace('<a href="#F1-L-1"><span class="linenos">', "")


def test_several_files_are_downloaded_as_a_zip(client: Client, token: str) -> None:
    submission = entered(token, entry="main.cpp")
    answer = client.get(f"{submission.get_absolute_url()}source/")
    assert answer["Content-Disposition"] == f'attachment; filename="{submission}.zip"'
    with ZipFile(BytesIO(answer.getvalue())) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert texts == {"main.cpp": SOURCE, **FILES}


def test_the_sources_of_several_files_differ_in_any_of_them(client: Client, token: str) -> None:
    first = entered(token)
    second = entered(token, files={**FILES, "b.hpp": "int c;\n"})
    client.force_login(first.author)
    page = client.get(f"{second.get_absolute_url()}differences/").content.decode()
    assert "int c;" in page
    assert "==&gt; b.hpp &lt;==" in page
