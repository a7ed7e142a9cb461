"""Makes one answer out of what an endpoint sends: a stream of events, or one JSON document."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal

import openai

from runs_app.optimiser.llm.wire import Body

MAX_TEXT_BYTES = 256 * 1024
MAX_UNSEEN_BYTES = 4 * 2**20  # of reasoning
MAX_NAME = 200
END = object()  # of a stream

Form = Literal["nothing", "events", "document", "page"]


class Garbage(Exception):
    """What came is not what its form promises."""


class Answer:
    """What has arrived so far of one answer; anything of an unknown form is left aside."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.text_bytes = 0
        self.unseen_bytes = 0  # of reasoning, which is paid and not kept
        self.refusal = ""
        self.finish_reason = ""
        self.model = ""
        self.usage: dict[str, object] = {}
        self.error: dict[str, object] | None = None
        self.is_answer = False  # something had the form of a chat completion
        self.is_cut = False  # more came than is kept
        self.form: Form = "nothing"

    def add(self, document: object) -> bool:
        """Take one event or the whole document; True if the answer got further by it."""
        if not isinstance(document, dict):
            return False
        if document.get("error"):
            error = document["error"]
            self.error = error if isinstance(error, dict) else {"message": error}
            return False
        self.model = plain(document.get("model"))[:MAX_NAME] or self.model
        if isinstance(document.get("usage"), dict):
            self.usage = document["usage"]
        choices = document.get("choices")
        if not isinstance(choices, list):
            return False
        self.is_answer = True
        found = [self._choice(choice) for choice in choices if isinstance(choice, dict)]
        return any(found)

    def add_whole(self, body: bytes) -> None:
        """Take a body that came as one document; Garbage if it is none."""
        if body.startswith(b"<"):
            self.form = "page"
        elif body:
            self.form = "document"
            try:
                self.add(json.loads(body))
            except (ValueError, RecursionError) as error:
                raise Garbage(type(error).__name__) from None

    def _choice(self, choice: dict[str, object]) -> bool:
        if choice.get("index") not in (None, 0):
            return False  # one answer was asked for
        part = choice.get("delta") or choice.get("message") or {}
        part = part if isinstance(part, dict) else {}
        self.finish_reason = plain(choice.get("finish_reason"))[:MAX_NAME] or self.finish_reason
        thought = part.get("reasoning_content") or part.get("reasoning")
        thought_bytes = len(plain(thought).encode())
        self.unseen_bytes += thought_bytes
        self.is_cut = self.is_cut or self.unseen_bytes > MAX_UNSEEN_BYTES
        refusal = plain(part.get("refusal")) + plain(part.get("content"), "refusal")
        self.refusal = (self.refusal + refusal)[:MAX_TEXT_BYTES]
        text = plain(part.get("content"))
        self._append(text)
        return bool(thought_bytes or refusal or text)

    def _append(self, text: str) -> None:
        """Keep at most MAX_TEXT_BYTES of text; half a character at the end goes."""
        raw = text.encode()
        room = MAX_TEXT_BYTES - self.text_bytes
        self.is_cut = self.is_cut or len(raw) > room
        self.text_bytes += min(len(raw), room)
        self._pieces.append(raw[:room].decode(errors="ignore"))

    @property
    def text(self) -> str:
        """The text so far."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]


def plain(content: object, kind: str = "text") -> str:
    """Text of a content that is a string or a list of parts; of parts only those of `kind`.

    What a database cannot keep is replaced: lone surrogates and NUL.
    """
    texts: list[object]
    if isinstance(content, str):
        texts = [content] if kind == "text" else []
    elif isinstance(content, list):
        texts = [part.get(kind) for part in content if isinstance(part, dict)]
    else:
        return ""
    joined = "".join(text for text in texts if isinstance(text, str))
    return joined.encode(errors="replace").decode().replace("\0", "\ufffd")


def read(stream: openai.Stream[object], answer: Answer, tell: Callable[[Answer], None]) -> None:
    """Fill `answer` until it ends or is cut, calling `tell` as it grows.

    A body without events is a document: endpoints mislabel what they send. Raises what `openai`
    and `httpx2` raise, Garbage, and whatever `tell` raises.
    """
    body = stream.response.stream
    assert isinstance(body, Body)
    while (event := next_event(stream)) is not END:
        body.use()
        answer.form = "events"
        if answer.add(event):
            tell(answer)
        if answer.is_cut:
            return
    if answer.form == "nothing":
        answer.add_whole(bytes(body.unread).strip())


def next_event(stream: openai.Stream[object]) -> object:
    """The next event, END after the last; Garbage where the data of one is no JSON document."""
    try:
        return next(stream, END)
    except (ValueError, RecursionError) as error:
        raise Garbage(type(error).__name__) from None
