"""A command as a language model: what it is given, what it may take, and that nothing is left."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs_app.optimiser.llm import tries
from runs_app.optimiser.llm.client import complete
from runs_app.optimiser.llm.endpoint import COMMANDS_VARIABLE, Endpoint, commands
from runs_app.optimiser.llm.errors import CallError, CallInterrupted, StopCall
from runs_app.optimiser.llm.tries import Refused

Agent = Callable[..., Endpoint]
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "A kernel?"}]


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Names a Python program as this host's command `agent`."""

    def named(program: str, **fields: Any) -> Endpoint:
        script = tmp_path / "agent.py"
        script.write_text(program)
        monkeypatch.setenv(COMMANDS_VARIABLE, json.dumps({"agent": [sys.executable, str(script)]}))
        known: dict[str, Any] = {"name": "a", "api_name": "m-1", "base_url": "command:agent"}
        return Endpoint(**{**known, "timeout_s": 20.0, **fields})

    return named


def ask(endpoint: Endpoint, **fields: Any) -> Any:
    known = {"temperature": 0.5, "max_tokens": 500, "seed": 7, "call_id": "c1"}
    return complete(endpoint, MESSAGES, **{**known, **fields})


def test_it_gets_prompt_and_limits_in_a_folder_of_its_own(agent: Agent) -> None:
    program = (
        "import os, sys, json\n"
        "told = {k: v for k, v in os.environ.items() if k.startswith('KBENCH_')}\n"
        "same = open('prompt.md').read() == sys.stdin.read()\n"
        "roles = [m['role'] for m in json.load(open('messages.json'))]\n"
        "print(json.dumps([told, same, roles, os.getcwd(), os.environ['HOME']]))\n"
    )
    found = ask(agent(program))
    told, same, roles, folder, home = json.loads(found.text)
    limits = {"MODEL": "m-1", "MAX_TOKENS": "500", "TEMPERATURE": "0.5", "SEED": "7"}
    assert told == {f"KBENCH_{name}": value for name, value in limits.items()}
    assert (same, roles, home) == (True, ["system", "user"], folder)
    assert not Path(folder).exists()
    assert (found.finish_reason, found.model, found.attempts) == ("stop", "m-1", 1)


def test_it_sees_its_key_and_no_other_secret(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_API_KEY", "sesame")
    monkeypatch.setenv("DJANGO_SECRET", "hidden")
    program = "import os; print(os.environ.get('AGENT_API_KEY'), os.environ.get('DJANGO_SECRET'))"
    assert ask(agent(program, key_variable="AGENT_API_KEY")).text.split() == ["sesame", "None"]
    assert ask(agent(program)).text.split() == ["None", "None"]


def test_what_it_says_to_have_used_is_charged(agent: Agent) -> None:
    program = (
        "import json\n"
        "open('answer.md', 'w').write('the kernel')\n"
        "json.dump({'tokens_in': 9000, 'tokens_out': 1234}, open('usage.json', 'w'))\n"
        "print('chatter')\n"
    )
    found = ask(agent(program))
    assert found.text == "the kernel"
    assert (found.usage.tokens_in, found.usage.tokens_out) == (9000, 1234)
    assert not found.usage.estimated


@pytest.mark.parametrize("told", ["no JSON", '{"tokens_in": -1, "tokens_out": 5}', "[]"])
def test_without_a_count_the_whole_allowance_is_charged(agent: Agent, told: str) -> None:
    program = f"open('usage.json', 'w').write({told!r}); print('x')"
    usage = ask(agent(program)).usage
    assert (usage.tokens_out, usage.estimated) == (500, True)


def test_a_failure_says_why_without_the_key(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_API_KEY", "sesame")
    program = "import sys; print('half'); sys.exit('no luck with sesame')"
    with pytest.raises(CallError, match="status 1: no luck with") as failed:
        ask(agent(program, key_variable="AGENT_API_KEY"))
    assert (failed.value.kind, failed.value.text.strip()) == ("unavailable", "half")
    assert "sesame" not in failed.value.reason
    assert failed.value.usage is not None


class Measurer:
    """Says what it was given, at the second time that it is asked; refuses a third kernel."""

    most, suffix = 2, ".cpp"

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.asked = 0

    def begin(self, source: str) -> str:
        if len(self.begun) == self.most:
            raise Refused("all 2 attempts are used up")
        self.begun.append(source)
        return source

    def report(self, key: str) -> str | None:
        self.asked += 1
        return f"CORRECT: {key}" if self.asked > 1 else None


def test_kernels_are_measured_meanwhile(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tries, "_SETTLED_S", 0.0)
    program = (
        "import os, time\n"
        "from pathlib import Path\n"
        "assert 'attempts/1.cpp' in Path('prompt.md').read_text()\n"
        "for n in '123':\n"
        "    Path(n).write_text('kernel ' + n)\n"
        "    Path(n).rename(f'attempts/{n}.cpp')\n"
        "    while not Path(f'attempts/{n}.cpp.md').exists():\n"
        "        time.sleep(0.01)\n"
        "    print(Path(f'attempts/{n}.cpp.md').read_text(), end='', flush=True)\n"
    )
    measurer = Measurer()
    text = ask(agent(program), measurer=measurer).text
    assert text.splitlines()[:2] == ["CORRECT: kernel 1", "CORRECT: kernel 2"]
    assert "all 2 attempts are used up" in text
    assert measurer.begun == ["kernel 1", "kernel 2"]


def test_nothing_but_whole_files_is_measured(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, measurer = tmp_path / "secret", Measurer()
    secret.write_text("hidden")
    folder = tmp_path / "folder"
    folder.mkdir()
    attempts = tries.Attempts(folder, measurer)
    (folder / "attempts" / "link.cpp").symlink_to(secret)
    (folder / "attempts" / "folder.cpp").mkdir()
    (folder / "attempts" / "young.cpp").write_text("half")
    attempts.look()
    assert measurer.begun == []
    monkeypatch.setattr(tries, "_SETTLED_S", 0.0)
    monkeypatch.setattr(tries, "MOST_BYTES", 3)
    attempts.look()
    assert measurer.begun == []
    answer = (folder / "attempts" / "young.cpp.md").read_text()
    assert answer == "Not measured: it is larger than 0 MiB.\n"


def test_at_the_end_of_its_time_it_dies_with_its_children(agent: Agent, tmp_path: Path) -> None:
    mark = tmp_path / "child"
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\n"
        "print('so far', flush=True)\ntime.sleep(60)\n"
    )
    began = time.monotonic()
    with pytest.raises(CallInterrupted, match="did not finish within 1 s") as late:
        ask(agent(program, timeout_s=1.0))
    assert time.monotonic() - began < 50
    assert late.value.text.strip() == "so far"
    child = Path(f"/proc/{int(mark.read_text())}/stat")
    deadline = time.monotonic() + 60
    while child.exists() and child.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not child.exists() or child.read_text().split()[2] == "Z"


@pytest.mark.parametrize("command", [None, ["/nowhere/agent"]])
def test_a_command_that_is_not_there_needs_a_person(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, command: list[str] | None
) -> None:
    endpoint = agent("print('x')")
    monkeypatch.setenv(COMMANDS_VARIABLE, json.dumps({"agent": command} if command else {}))
    with pytest.raises(CallError, match="cannot be run" if command else "doesn't define 'agent'"):
        ask(endpoint)


def test_one_that_says_nothing_or_is_given_up_has_answered_nothing(agent: Agent) -> None:
    def stop(_text: str) -> None:
        raise StopCall

    with pytest.raises(CallError, match="produced no answer"):
        ask(agent("pass"))
    with pytest.raises(CallInterrupted, match="abandoned"):
        ask(agent("import time; time.sleep(60)"), on_progress=stop)


def test_settings_and_addresses_hold_names_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for text in ("[]", "{", '{"A": ["x"]}', '{"a": "x"}', '{"a": []}'):
        monkeypatch.setenv(COMMANDS_VARIABLE, text)
        with pytest.raises(ValueError, match=COMMANDS_VARIABLE):
            commands()
    for name in ("", "../x", "Agent", "a b"):
        with pytest.raises(ValueError, match="command name"):
            Endpoint(name="a", api_name="a", base_url=f"command:{name}")


def test_links_out_of_the_folder_are_not_read(agent: Agent) -> None:
    secret = Path(__file__)
    program = f"import os; os.symlink({str(secret)!r}, 'answer.md'); print('mine')"
    assert ask(agent(program)).text.strip() == "mine"
    assert os.path.exists(secret)
