"""A language model that is a command: a coding agent's headless program, in a folder of its own.

It runs with the rights of the worker that asks, and without a jail: `endpoint` says who names it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs_app.optimiser.llm.attempt import MAX_REASON, PROGRESS_EVERY_S, Call, Completion, Progress
from runs_app.optimiser.llm.endpoint import COMMAND, COMMANDS_VARIABLE, Endpoint, commands
from runs_app.optimiser.llm.errors import CallError, CallInterrupted, StopCall, Usage
from runs_app.optimiser.llm.metering import count
from runs_app.optimiser.llm.tokens import Message, estimated_prompt_tokens
from runs_app.optimiser.llm.tries import TOLD, Attempts, Measurer

MOST_BYTES = 4 << 20
"""Of an answer; what is longer is cut."""

_POLL_S = 0.1
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy")


def ask_command(call: Call, measurer: Measurer | None) -> Completion:
    """Run the endpoint's command once; what it wrote to `answer.md`, or printed, is the answer.

    It is killed with all that it has started after `timeout_s`, and its folder is removed.
    measurer: has kernels measured that it tries before it answers. Raises `CallError` as
    `complete` does.
    """
    endpoint, tokens_in = call.endpoint, estimated_prompt_tokens(call.messages)
    command = _command_of(endpoint)
    worst = Usage(tokens_in=tokens_in, tokens_out=call.max_tokens, estimated=True)
    ends_at = min(call.clock() + endpoint.timeout_s, call.ends_at)
    with tempfile.TemporaryDirectory(prefix="kbench-agent-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        attempts, about = None, ""
        if measurer is not None:
            attempts = Attempts(folder, measurer)
            about = TOLD.format(most=measurer.most, suffix=measurer.suffix)
        prompt = _prompt(folder, call.messages, about)
        with _running(command, folder, prompt, _environment(call, folder)) as process:
            waiting = _Waiting(process, folder, worst, call.on_progress, attempts)
            late = waiting.until(ends_at, call.clock)
        return _read(folder, endpoint, worst, process.returncode, late=late)


def _command_of(endpoint: Endpoint) -> list[str]:
    name = endpoint.base_url.removeprefix(COMMAND)
    try:
        known = commands()
    except ValueError as error:
        raise CallError(str(error), "auth") from None
    if name not in known:
        raise CallError(f"{COMMANDS_VARIABLE} on this host doesn't define {name!r}", "auth")
    return known[name]


def _prompt(folder: Path, messages: Sequence[Message], more: str) -> Path:
    """The dialogue as one text, which is the command's standard input, too."""
    parts = [f"[{message['role']}]\n\n{message['content']}" for message in messages]
    prompt = folder / "prompt.md"
    prompt.write_text("\n\n".join(parts) + "\n" + more)
    (folder / "messages.json").write_text(json.dumps(list(messages)))
    return prompt


def _environment(call: Call, folder: Path) -> dict[str, str]:
    """No secret of the host but the key that the language model names."""
    endpoint = call.endpoint
    told: dict[str, object] = {
        "KBENCH_MODEL": endpoint.api_name,
        "KBENCH_MAX_TOKENS": call.max_tokens,
        "KBENCH_TEMPERATURE": call.temperature if endpoint.supports_temperature else None,
        "KBENCH_SEED": call.seed,
        "HOME": folder,
        "TMPDIR": folder,
    }
    found = {name: os.environ[name] for name in _KEPT if name in os.environ}
    found |= {name: str(value) for name, value in told.items() if value is not None}
    if key := endpoint.key():
        found[endpoint.key_variable] = key
    return found


@contextlib.contextmanager
def _running(
    command: list[str], folder: Path, prompt: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, in a group of its own that is killed whatever happens."""
    with (
        prompt.open("rb") as asked,
        (folder / ".stdout").open("wb") as out,
        (folder / ".stderr").open("wb") as errors,
    ):
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=asked,
                stdout=out,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise CallError(f"the command cannot be run: {error.strerror}", "auth") from None
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@dataclass
class _Waiting:
    """For a command's end; meanwhile its answer so far is told, and its attempts are measured."""

    process: subprocess.Popen[bytes]
    folder: Path
    worst: Usage
    on_progress: Progress | None
    attempts: Attempts | None

    def until(self, ends_at: float, clock: Callable[[], float]) -> bool:
        """True if its time was over before. Raises `CallInterrupted` if it was given up."""
        told_at = clock()
        while self.process.poll() is None:
            if clock() > ends_at:
                return True
            if clock() - told_at >= PROGRESS_EVERY_S:
                told_at = clock()
                self._look()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_POLL_S)
        return False

    def _look(self) -> None:
        if self.attempts is not None:
            with contextlib.suppress(OSError):  # the folder is the command's own
                self.attempts.look()
        if self.on_progress is None:
            return
        try:
            self.on_progress(_answer(self.folder)[0])
        except StopCall:
            reason = "the call was abandoned while the command was running"
            raise CallInterrupted(reason, self.worst, _answer(self.folder)[0]) from None


def _read(folder: Path, endpoint: Endpoint, worst: Usage, status: int, *, late: bool) -> Completion:
    text, is_cut = _answer(folder)
    usage = _usage(folder) or worst
    if late:
        reason = f"the command did not finish within {endpoint.timeout_s:g} s and was killed"
        raise CallInterrupted(reason, usage, text)
    if status != 0:
        words = _last_words(folder, endpoint)
        reason = f"the command exited with status {status}" + (f": {words}" if words else "")
        raise CallError(reason[:MAX_REASON], "unavailable", usage=usage, text=text)
    if not text.strip():
        raise CallError("the command produced no answer", "empty", usage=usage)
    end = "cut" if is_cut else "stop"
    return Completion(
        text=text, finish_reason=end, usage=usage, model=endpoint.api_name, attempts=1
    )


def _answer(folder: Path) -> tuple[str, bool]:
    """What it has written to answer.md, else what it has printed; and whether more was there."""
    for name in ("answer.md", ".stdout"):
        path = folder / name
        with contextlib.suppress(OSError):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    found = file.read(MOST_BYTES + 1)
                if found.strip():
                    text = found[:MOST_BYTES].decode(errors="replace")
                    return text, len(found) > MOST_BYTES
    return "", False


def _usage(folder: Path) -> Usage | None:
    """What it says to have used, in usage.json: tokens_in and tokens_out of all its attempts."""
    path = folder / "usage.json"
    try:
        if path.is_symlink() or path.stat().st_size > 10_000:
            return None
        told = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    tokens_in, tokens_out = count(told, "tokens_in"), count(told, "tokens_out")
    if tokens_in is None or tokens_out is None or min(tokens_in, tokens_out) < 0:
        return None
    if max(tokens_in, tokens_out) > 2**31 - 1:
        return None
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out)


def _last_words(folder: Path, endpoint: Endpoint) -> str:
    """The end of what it printed as errors, without its key."""
    with contextlib.suppress(OSError):
        words = (folder / ".stderr").read_bytes()[-2000:].decode(errors="replace")
        key = os.environ.get(endpoint.key_variable, "").strip() if endpoint.key_variable else ""
        return " ".join((words.replace(key, "***") if key else words).split())[-300:]
    return ""
