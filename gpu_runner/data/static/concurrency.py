"""Rules about work that can outlive a call: detached threads, streams that nobody waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gpu_runner.data.static.case import Case, Finding, Rule
from gpu_runner.data.static.tokens import SEARCH_LIMIT, Kind, Token, text_at

_DETACHES = re.compile(
    r"pthread_detach|PTHREAD_CREATE_DETACHED|pthread_attr_setdetachstate|thrd_detach"
)
_STARTS = re.compile(r"pthread_create|thrd_create")
_JOINS = {"join", "pthread_join", "thrd_join", "jthread"}
_STREAM = re.compile(r"cudaStreamCreateWith\w+|cuStreamCreate\w*|getStreamFromPool")
_WAITS = re.compile(
    r"cudaStreamSynchronize|cudaDeviceSynchronize|cudaEventSynchronize"
    r"|cuStreamSynchronize|cuCtxSynchronize|cuEventSynchronize|device_synchronize"
    r"|cudaGraphLaunch|cudaStreamEndCapture"
)
_WAITS_FOR_EVENT = {"cudaStreamWaitEvent", "cuStreamWaitEvent"}
_WAITING_METHODS = {"synchronize", "block"}  # of torch's streams and events


def _threads(case: Case) -> Iterator[Finding]:
    started: list[int] = []
    threads = bool(case.words & {"thread", "jthread"})
    places = ((stream, i) for stream in case.unit.passes for i in range(len(stream)))
    for stream, i in places:
        token = stream[i]
        if token.kind is not Kind.WORD:
            continue
        before = text_at(stream, i - 1)
        if _DETACHES.fullmatch(token.text) or (
            # A tensor has a `detach` of its own; it has nothing to do with threads.
            threads and token.text == "detach" and before in (".", "->")
        ):
            yield Finding("detach", token.line, f"{token.text!r} lets a thread outlive its call")
        own = token.text == "thread" and before == "::" and text_at(stream, i - 2) == "std"
        if own and text_at(stream, i + 1) == "::":  # std::thread::hardware_concurrency
            continue
        if own or _STARTS.fullmatch(token.text):
            started.append(token.line)
    if started and not case.words & _JOINS:
        yield Finding("join", started[0], "starts threads and never joins them")


def _streams(case: Case) -> Iterator[Finding]:
    """A stream of one's own is fine; one that nobody ever waits for hides work from the clock.

    The default stream waits for those of `cudaStreamCreate` by itself.
    """
    made = [
        (code, i)
        for code in case.unit.passes
        for i, token in enumerate(code)
        if token.kind is Kind.WORD and _STREAM.fullmatch(token.text)
    ]
    if not made or any(_WAITS.fullmatch(word) for word in case.words):
        return
    for stream, i in case.places(_WAITING_METHODS):
        if text_at(stream, i - 1) in (".", "->", "::") and text_at(stream, i + 1) == "(":
            return
    own = {name for code, i in made for name in _first_argument(code, i)}
    for stream, i in case.places(_WAITS_FOR_EVENT):
        if not own & _first_argument(stream, i):  # not only the own stream waits for another
            return
    code, first = made[0]
    yield Finding("stream", code[first].line, "makes a stream, and nothing ever waits for one")


def _first_argument(stream: Sequence[Token], i: int) -> set[str]:
    """Words of the first argument of the call at `i`."""
    found = set()
    for token in stream[i + 2 : i + 2 + SEARCH_LIMIT]:
        if token.text in (",", ")"):
            break
        if token.kind is Kind.WORD:
            found.add(token.text)
    return found


CONCURRENCY_RULES = (
    Rule("threads", "threads that are detached, or started and nowhere joined", _threads),
    Rule(
        "streams",
        "non-blocking streams made where the whole source waits for no stream, event or graph",
        _streams,
    ),
)
