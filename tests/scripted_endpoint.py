"""A real local HTTP server that speaks the OpenAI protocol and answers by a script.

In a test:

    from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint

    with ScriptedEndpoint([Answer("first"), Answer(status=429, retry_after="2")]) as endpoint:
        ...                                  # the endpoint's address is endpoint.base_url
        assert [asked.model for asked in endpoint.asked] == ["m", "m"]

The script is a list, whose last answer is repeated, or a function from `Asked` to `Answer`, called
in the thread of the request (several at once):

    def script(asked: Asked) -> Answer:
        return Answer(KERNEL if "Write a kernel" in asked.prompt else "yes", delay_s=0.2)

A function that raises answers 400, and its error is raised when the context ends. `Answer` (in
`tests/scripted_answers.py`) says what is sent and how; see its fields, and `HUGE`, `GARBAGE`,
`HTML`, `EMPTY` there.
`endpoint.asked` is a copy of all requests so far, each noted before it is answered, also those
that are refused for a wrong key. `endpoint.wait_for(n)` blocks until n requests have come: the
moment to kill a client. `endpoint.most_at_once` is the highest number of open requests. With
`record=FILE` each request is also appended to FILE as a line of JSON (`read_record` reads it).
`key="k"` answers 401 to requests without `Authorization: Bearer k`. Leaving the context ends
delays at once and closes the server.

As a process of its own, with a `.json` file (a list of objects with the fields of `Answer`) or a
`.py` file that defines `script`:

    python -m tests.scripted_endpoint --port 8123 --script FILE [--record FILE] [--key KEY]

It prints its base URL when it listens; port 0 means a free one.
"""

from __future__ import annotations

import argparse
import json
import runpy
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.scripted_answers import (
    EMPTY,
    GARBAGE,
    HTML,
    HUGE,
    MODEL,
    Answer,
    Asked,
    events,
    whole,
)

__all__ = ["EMPTY", "GARBAGE", "HTML", "HUGE", "MODEL", "Answer", "Asked", "ScriptedEndpoint"]

Script = Callable[[Asked], Answer] | Sequence[Answer]


class ScriptedEndpoint:
    """The server; a context manager that listens on 127.0.0.1 while it is open."""

    def __init__(
        self,
        script: Script,
        *,
        key: str | None = None,
        record: Path | None = None,
        port: int = 0,
        models: Sequence[str] = (MODEL,),
    ) -> None:
        """Listen on `port`, 0 for a free one; nothing is answered before the context is entered."""
        self.models = list(models)
        self.key = key
        self.closing = threading.Event()
        self.most_at_once = 0
        self._script = script
        self._record = record
        self._asked: list[Asked] = []
        self._open = 0
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self._server = Server(("127.0.0.1", port), Handler)
        self._server.endpoint = self
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        """Answer from now on."""
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, ending what is being delayed; what a function of a script raised is raised now."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        if self._error is not None and error is None:
            raise self._error

    @property
    def asked(self) -> list[Asked]:
        """All requests for a completion so far."""
        with self._changed:
            return list(self._asked)

    def wait_for(self, count: int, timeout_s: float = 60.0) -> list[Asked]:
        """The requests, as soon as there are `count`; TimeoutError if they do not come."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._asked) >= count, timeout_s):
                raise TimeoutError(f"{len(self._asked)} of {count} requests came")
            return list(self._asked)

    def note(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Asked:
        """Keep a request, on disk too where wanted, and count it as open."""
        with self._changed:
            number = len(self._asked) + 1
            asked = Asked(number=number, path=path, at=time.time(), headers=headers, body=body)
            self._asked.append(asked)
            self._open += 1
            self.most_at_once = max(self.most_at_once, self._open)
            if self._record is not None:
                with self._record.open("a") as lines:
                    lines.write(json.dumps(asdict(asked)) + "\n")
            self._changed.notify_all()
        return asked

    def ended(self) -> None:
        """A request is no longer open."""
        with self._changed:
            self._open -= 1

    def answer(self, asked: Asked) -> Answer:
        """What the script says."""
        if self.key is not None and asked.headers.get("authorization") != f"Bearer {self.key}":
            said = asked.headers.get("authorization", "nothing").removeprefix("Bearer ")
            return Answer(status=401, message=f"Incorrect API key provided: {said}")
        if callable(self._script):
            try:
                return self._script(asked)
            except Exception as error:  # shown to the test when the context ends
                self._error = self._error or error
                return Answer(status=400, message=f"the script failed: {error!r}")
        return self._script[min(asked.number, len(self._script)) - 1]


def read_record(path: Path) -> list[Asked]:
    """The requests in the file that `record` named; none if there is no file yet."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Asked(**json.loads(line)) for line in lines]


class Server(ThreadingHTTPServer):
    """A thread for each connection, none of which keeps the process alive."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    endpoint: ScriptedEndpoint

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the game; the client's side is what tests look at."""


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Be quiet: requests are noted in `asked`."""

    def do_GET(self) -> None:
        """List the language models."""
        models = [{"id": name, "object": "model"} for name in self.server.endpoint.models]
        self._whole(200, json.dumps({"object": "list", "data": models}))

    def do_POST(self) -> None:
        """Answer a request for a completion."""
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/v1/chat/completions":
            self._whole(404, json.dumps({"error": {"message": f"no such path: {self.path}"}}))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        endpoint = self.server.endpoint
        asked = endpoint.note(self.path, headers, json.loads(raw))
        try:
            self._send(asked, endpoint.answer(asked))
        finally:
            endpoint.ended()

    def _send(self, asked: Asked, answer: Answer) -> None:
        self._pause(answer.delay_s)
        if answer.drop == "before":
            self._reset()
        elif answer.body is not None:
            self._whole(answer.status, answer.body, answer.content_type, answer.headers)
        elif answer.status != 200:
            self._failure(answer)
        elif answer.stream or (answer.stream is None and asked.body.get("stream")):
            self._streamed(asked, answer)
        else:
            self._whole(200, json.dumps(whole(asked, answer)), headers=answer.headers)

    def _failure(self, answer: Answer) -> None:
        error = {"message": answer.message, "type": "scripted", "code": answer.code}
        headers = dict(answer.headers)
        if answer.retry_after is not None:
            headers["Retry-After"] = answer.retry_after
        self._whole(answer.status, json.dumps({"error": error}), headers=headers)

    def _whole(
        self,
        status: int,
        body: str,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> None:
        raw = body.encode("utf-8", "surrogatepass")
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(raw)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def _streamed(self, asked: Asked, answer: Answer) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        until = time.monotonic() + answer.comments_s
        while time.monotonic() < until and not self.server.endpoint.closing.is_set():
            self._piece(": still there\n\n")
            self._pause(0.02)
        planned = events(asked, answer)
        if answer.error_after is not None:
            error = {"error": {"message": answer.message, "code": answer.code}}
            planned[answer.error_after :] = [error]
        for number, event in enumerate(planned):
            if answer.drop == "after" and number >= answer.drop_chunks:
                self._reset()
                return
            self._pause(answer.chunk_delay_s)
            self._piece(f"data: {json.dumps(event)}\n\n")
        if answer.done:
            self._piece("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _piece(self, text: str) -> None:
        raw = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))

    def _pause(self, seconds: float) -> None:
        if seconds:
            self.server.endpoint.closing.wait(seconds)

    def _reset(self) -> None:
        """Close so that the other side sees a reset."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


def load_script(path: Path) -> Script:
    """The script in a `.json` or `.py` file."""
    if path.suffix == ".json":
        return [Answer(**fields) for fields in json.loads(path.read_text())]
    script: Script = runpy.run_path(str(path))["script"]
    return script


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible endpoint with a script.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--key")
    chosen = parser.parse_args()
    script = load_script(chosen.script)
    with ScriptedEndpoint(
        script, key=chosen.key, record=chosen.record, port=chosen.port
    ) as endpoint:
        print(endpoint.base_url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
