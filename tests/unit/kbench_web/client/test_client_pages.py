"""What the site gives to programs: a client that installs alone, and a guide whose words hold."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client

from gpu_runner.data.formats import find_task
from gpu_runner.data.static import RULES, module_suspicions
from kbench_client import main as client
from kbench_web.client import wheel
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def test_the_site_serves_a_client_that_runs_alone(
    settings: Any, folder: Path, tmp_path: Path
) -> None:
    settings.DATA_DIR = folder
    about = Client().get("/api/v1/site").json()
    answer = Client().get(about["client"])
    assert answer.status_code == 200
    content = b"".join(answer.streaming_content)
    with zipfile.ZipFile(BytesIO(content)) as packed:
        names = packed.namelist()
        packed.extractall(tmp_path)
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"kbench_client", "gpu_runner"}
    assert "gpu_runner/native/runner.cpp" in names
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from kbench_client.main import main; main(['--version'])"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"kbench {about['version']}\n", done.stderr
    assert answer["Content-Disposition"].endswith('-py3-none-any.whl"')


def test_another_versions_client_is_not_here(settings: Any, folder: Path) -> None:
    settings.DATA_DIR = folder
    assert Client().get("/client/kbench-9.9.9-py3-none-any.whl").status_code == 404
    assert Client().get("/client/..%2Fsecret_key").status_code == 404
    assert Client().post(f"/client/{wheel.name()}").status_code == 405


def test_a_client_that_cannot_be_built_is_a_503(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(wheel, "_BUILD", "raise SystemExit('no build tool')")
    answer = Client().get(f"/client/{wheel.name()}")
    assert (answer.status_code, b"no build tool" in answer.content) == (503, True)
    assert not list((tmp_path / "client").glob("*"))


@pytest.mark.usefixtures("jobs")
def test_the_body_that_the_guide_sends_is_taken() -> None:
    make.make_task_version(name="vector_add")
    guide = Client().get("/agents.md").content.decode()
    body = re.search(r"<<'JSON'\n(.*?)\nJSON\n", guide, re.DOTALL)
    assert body
    headers = {"Authorization": f"Bearer {make.make_token(make.make_user())}"}
    address = "/api/v1/submissions"
    made = Client().post(address, body[1], content_type="application/json", headers=headers)
    assert made.status_code == 201
    status = Client().get(f"{address}/{made.json()['id']}/status").content.decode()
    assert '"over": false' in status  # as the guide's command looks for


def test_every_command_of_the_guide_and_of_the_page_exists(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (Path(django_settings.BASE_DIR) / "docs/client.md").read_text()
    guide = Client().get("/agents.md").content.decode()
    named = set(re.findall(r"\bkbench ([a-z]+)\b(?! site)", guide + page))
    parser = client._parser()
    known = set(parser._subparsers._group_actions[0].choices)  # type: ignore[union-attr,arg-type]
    assert known <= named
    for text in (page, guide):
        assert set(re.findall(r"^\| (\d) \|", text, re.MULTILINE)) == {
            str(int(status)) for status in client.Exit
        }
    tools = re.findall(r"[a-z_]+", guide.split("Its tools: ")[1].split(".\n")[0])
    assert "start_run" in tools


def test_the_sleeps_that_the_guide_names_are_suspected() -> None:
    guide = Client().get("/agents.md").content.decode()
    named = re.findall(r"`([\w.]+)`", guide.split("It may not sleep")[1].partition(":")[0])
    rules = {rule.name: rule.find for rule in RULES}
    for name in named:
        if name == "time.sleep":
            assert module_suspicions(f"import time\n{name}(1)\n", find_task("softmax"))
        else:
            assert rules["sleeps"].matches(name)  # type: ignore[attr-defined]


def test_programs_find_the_guide_and_every_document_as_text() -> None:
    text = Client().get("/llms.txt").content.decode()
    paths = re.findall(r"\(http://testserver(/[^)]+)\)", text)
    assert {"/agents.md", "/docs/results.md", "/docs/kernels.md"} <= set(paths)
    for path in paths:
        assert Client().get(path).status_code == 200, path
    page = Client().get("/docs/results.md")
    assert (page["Content-Type"], page.content[:2]) == ("text/markdown; charset=utf-8", b"# ")
    for path in ("/docs/nothing.md", "/docs/../README.md", "/docs/%2e%2e/README.md"):
        assert Client().get(path).status_code == 404
    forbidden = re.findall(r"^Disallow: (.+)$", Client().get("/robots.txt").content.decode(), re.M)
    assert forbidden
    assert not [path for path in forbidden if "/leaderboard/".startswith(path)]
