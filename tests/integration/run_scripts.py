"""What the scripted language models of the tests about runs say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.scripted_endpoint import EMPTY, GARBAGE, HUGE, Answer, Asked

SIGNATURE = "void scale(float* out, const float* x, int N)"
ROLES = {
    "You read logs of compilers": "summarise",
    "You plan how": "plan",
    "You turn an optimisation strategy": "code",
    "You are the last to see": "compile",
    "You find out why": "debug",
    "You read profiles": "recommend",
    "You review": "verify",
    "You check a review": "reflect",
}


def source(says: str) -> str:
    """A kernel of which a `ScriptedRunner` says that: a verdict and nanoseconds."""
    return (
        f"static const int {says} = 1;\n"
        f'extern "C" {SIGNATURE} {{\n  out[0] = {says} * N * x[0];\n}}\n'
    )


def kernel(says: str) -> Answer:
    """That kernel in an answer of the form that prompts ask for."""
    text = f"NAME: {says}\nTHOUGHT: it may help.\nCODE:\n```cpp\n{source(says)}```\n"
    return Answer(text, chunk_chars=200)


def role(asked: Asked) -> str:
    """Which role a prompt gives to the language model: "write" for all that only write kernels."""
    system = str(asked.messages[0]["content"])
    return next((name for words, name in ROLES.items() if system.startswith(words)), "write")


def good(asked: Asked) -> Answer:
    """A model that does all that it is asked for; each kernel is faster than the last."""
    match role(asked):
        case "summarise":
            return Answer("SUMMARY: the brace of line 2 is never closed.")
        case "plan":
            return Answer("STRATEGY: read four values at once.")
        case "recommend":
            return Answer("RECOMMENDATIONS: 1. vectorise. 2. unroll. 3. prefetch.")
        case "compile":
            return Answer("OK")
        case "verify" | "reflect":
            return Answer("Nothing is wrong.\nFINAL VERIFICATION ANSWER: True")
    return kernel(f"CORRECT_{1900 - 10 * asked.number}")


def slow(asked: Asked) -> Answer:
    """The same, but each answer takes three seconds."""
    return replace(good(asked), delay_s=3.0)


def slowish(asked: Asked) -> Answer:
    """The same, but each answer takes half a second."""
    return replace(good(asked), delay_s=0.5)


def hanging(asked: Asked) -> Answer:
    """The first proposal is answered when nobody waits any more, all others at once."""
    return replace(good(asked), delay_s=60.0 if asked.number == 1 else 0.0)


def clumsy(asked: Asked) -> Answer:
    """Every kernel that is written fails, until it was debugged twice or written three times."""
    text = asked.prompt
    match role(asked):
        case "code":
            return kernel(f"COMPILE_ERROR_{asked.number}")
        case "debug" if "COMPILE_ERROR_" in text:
            return kernel(f"WRONG_RESULT_{asked.number}")
        case "write" if "WRONG_RESULT_" in text:
            return kernel(f"CORRECT_{1500 + asked.number}")
        case "write" if "COMPILE_ERROR_" in text:
            return kernel(f"WRONG_RESULT_{asked.number}")
        case "write":
            return kernel(f"COMPILE_ERROR_{asked.number}")
    return good(asked)


def critical(asked: Asked) -> Answer:
    """Verifiers reject every second kernel."""
    if role(asked) in ("verify", "reflect"):
        kernel_text = asked.prompt.rpartition("# The kernel")[2]
        odd = any(f"CORRECT_{n}" in kernel_text for n in range(1890, 0, -20))
        return Answer(f"Think.\nFINAL VERIFICATION ANSWER: {not odd}")
    return good(asked)


def editing(asked: Asked) -> Answer:
    """Answers requests for edits with an edit of the first line, others with kernels."""
    if "SEARCH" not in asked.prompt:
        return good(asked)
    first = next(line for line in asked.prompt.splitlines() if line.startswith("static const int"))
    old = first.split()[3]
    new = f"CORRECT_{1900 - 10 * asked.number}"
    body = f"  out[0] = {old} * N * x[0];"
    edits = [(first, first.replace(old, new)), (body, body.replace(old, new))]
    blocks = [f"<<<<<<< SEARCH\n{a}\n=======\n{b}\n>>>>>>> REPLACE" for a, b in edits]
    return Answer("NAME: an edit\nTHOUGHT: why not\nCODE:\n" + "\n".join(blocks))


NASTY = (
    Answer(status=429, retry_after="1"),
    Answer(status=500),
    GARBAGE,
    EMPTY,
    HUGE,
    Answer("I'm sorry, I can't help with that."),
    Answer("", refusal="I cannot do that."),
    kernel("CORRECT_1500"),
    kernel("CORRECT_1500"),
    kernel("COMPILE_ERROR_1"),
    Answer('Half a kernel:\n```cpp\nextern "C" ' + SIGNATURE + " {\n", finish_reason="length"),
    Answer("It breaks off here", drop="after", chunk_chars=4),
)


def nasty(asked: Asked) -> Answer:
    """Everything that endpoints and models do, one after the other, and then good kernels."""
    return NASTY[asked.number - 1] if asked.number <= len(NASTY) else good(asked)


HOSTILE = {
    "unrolled": "for (int i = 0; i < N; ++i) C[i] = B[i] + A[i];",
    "unknown name": "for (int i = 0; i < N; ++i) C[i] = A[i] + Z[i];",
    "reads a file": (
        f'std::FILE* file = std::fopen("{Path(__file__)}", "r");\n'
        "if (file) for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];"
    ),
    "forks": "for (;;) if (fork() < 0) std::abort();",
}
"""Kernels of the real task vector_add, by their titles."""


def hostile(asked: Asked) -> Answer:
    """Those kernels, one after the other."""
    title, body = list(HOSTILE.items())[asked.number - 1]
    return Answer(
        f"NAME: {title}\nTHOUGHT: let us see.\nCODE:\n```cpp\n"
        "#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n"
        'extern "C" void vector_add(const float* A, const float* B, float* C, int N) {\n'
        f"{body}\n}}\n```\n",
        chunk_chars=200,
    )
