"""The scripted endpoint itself: others build on what it says it does."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest

from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint, read_record
from tests.unit.runs_app.optimiser.llm.conftest import Caller

ROOT = Path(__file__).parents[5]


def test_a_function_decides_by_what_is_asked(caller: Caller) -> None:
    def script(asked: Asked) -> Answer:
        return Answer("hello" if "Hello?" in asked.prompt else "what?", delay_s=0.1)

    with ScriptedEndpoint(script) as endpoint, ThreadPoolExecutor(4) as threads:
        done = list(threads.map(caller.ask, [endpoint.base_url] * 4))
        assert endpoint.most_at_once > 1
    assert {one.text for one in done} == {"hello"}


def test_an_error_of_a_script_is_not_lost(caller: Caller) -> None:
    def script(asked: Asked) -> Answer:
        raise KeyError("oops")

    with pytest.raises(KeyError, match="oops"), ScriptedEndpoint(script) as endpoint:
        assert caller.fail(endpoint.base_url).kind == "bad_request"


def test_the_plain_client_is_served_too() -> None:
    with ScriptedEndpoint([Answer("yes")]) as endpoint:
        client = openai.OpenAI(api_key="k", base_url=endpoint.base_url, max_retries=0)
        assert [model.id for model in client.models.list()] == ["scripted-1"]
        messages = [{"role": "user", "content": "?"}]
        done = client.chat.completions.create(model="m", messages=messages)  # type: ignore[arg-type]
        assert done.choices[0].message.content == "yes"
        assert endpoint.asked[0].headers["authorization"] == "Bearer k"


def test_waiting_for_requests_that_do_not_come() -> None:
    with (
        ScriptedEndpoint([Answer("yes")]) as endpoint,
        pytest.raises(TimeoutError, match="0 of 1"),
    ):
        endpoint.wait_for(1, timeout_s=0.01)


def test_a_killed_client_leaves_its_request_on_record(tmp_path: Path) -> None:
    record = tmp_path / "asked.jsonl"
    client = (
        "import sys; from tests.unit.runs_app.optimiser.llm.conftest import Caller; "
        "Caller().ask(sys.argv[1], {'call_id': 'killed'})"
    )
    with ScriptedEndpoint([Answer("late", delay_s=60)], record=record) as endpoint:
        command = [sys.executable, "-c", client, endpoint.base_url]
        process = subprocess.Popen(command, cwd=ROOT)
        try:
            endpoint.wait_for(1, timeout_s=60)
        finally:
            process.kill()
            process.wait(60)
    assert [asked.call_id for asked in read_record(record)] == ["killed"]
    assert read_record(tmp_path / "none") == []


@pytest.mark.parametrize("form", ["json", "py"])
def test_a_process_of_its_own(caller: Caller, tmp_path: Path, form: str) -> None:
    script = tmp_path / f"script.{form}"
    if form == "json":
        script.write_text(json.dumps([{"text": "from a file"}]))
    else:
        code = "from tests.scripted_endpoint import Answer\n"
        script.write_text(code + "def script(asked):\n    return Answer('from a file')\n")
    record = tmp_path / "asked.jsonl"
    command = [sys.executable, "-m", "tests.scripted_endpoint", "--script", str(script)]
    process = subprocess.Popen(
        [*command, "--record", str(record)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        assert caller.ask(base_url).text == "from a file"
        assert [asked.model for asked in read_record(record)] == ["scripted-1"]
    finally:
        process.kill()
        process.communicate(timeout=60)
