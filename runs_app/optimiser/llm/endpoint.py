"""Where a language model is reached, what it accepts, and which commands of this host are some."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from runs_app.optimiser.llm.errors import MissingKey

# Set by the call itself: an extra parameter of that name would get past caps or break reading.
RESERVED = frozenset(
    {"model", "messages", "stream", "n", "best_of", "seed", "temperature", "max_tokens"}
    | {"max_completion_tokens"}
)
COMMAND = "command:"
"""How the address of a language model begins that is a command of the host: `llm.command`."""

_COMMAND = re.compile(r"command:[a-z0-9][a-z0-9_-]{0,60}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HEADER_VALUE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One language model at one OpenAI-compatible address; it names its key, never holds it.

    `name` is ours, `api_name` the endpoint's. A `key_variable` of "" means an endpoint without key.
    `extra` holds further body parameters such as `reasoning_effort`; one that is None is left
    out of the body, so that `{"stream_options": None}` suits an endpoint that refuses that one.
    A call without progress for `timeout_s` is given up. ValueError names a field that is wrong.
    """

    name: str
    api_name: str
    base_url: str
    key_variable: str = ""
    max_output_tokens: int = 8192
    extra: Mapping[str, object] = field(default_factory=dict)
    token_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105
    supports_temperature: bool = True
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        """Refuse what could not be called."""
        if not self.name or not self.api_name:
            raise ValueError("name, api_name: both are required")
        if self.key_variable and not VARIABLE.fullmatch(self.key_variable):
            raise ValueError("key_variable: must be the name of an environment variable, or empty")
        if self.token_parameter not in ("max_tokens", "max_completion_tokens"):
            raise ValueError("token_parameter: must be max_tokens or max_completion_tokens")
        check_url(self.base_url)
        self._check_numbers()
        self._check_extra()

    def _check_numbers(self) -> None:
        if self.max_output_tokens < 1:
            raise ValueError("max_output_tokens: must be at least 1")
        if not 0 < self.timeout_s <= 86_400:
            raise ValueError("timeout_s: must be more than 0 and at most 86400 seconds")

    def _check_extra(self) -> None:
        taken = RESERVED & set(self.extra)
        if taken:
            raise ValueError(f"extra: {', '.join(sorted(taken))} cannot be set here")
        try:
            json.dumps(dict(self.extra), allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError("extra: the parameters must be JSON-serializable") from None

    def key(self) -> str:
        """The key from the environment, "" where none is needed; MissingKey names the variable."""
        if not self.key_variable:
            return ""
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            raise MissingKey(
                f"the environment variable {self.key_variable} is empty or not set; set it "
                "in .env, or in the environment of the site and its workers, and restart them"
            )
        if not HEADER_VALUE.fullmatch(key):
            raise MissingKey(
                f"the environment variable {self.key_variable} contains characters that can't "
                "be part of a key; set it to the key only"
            )
        return key

    @property
    def is_command(self) -> bool:
        """Whether a command of the host answers, instead of an address."""
        return self.base_url.startswith(COMMAND)

    @property
    def thinks_unseen(self) -> bool:
        """Whether output may be paid that is not shown: reasoning that stays at the endpoint."""
        return self.token_parameter == "max_completion_tokens" or any(  # noqa: S105
            "reasoning" in name or "thinking" in name for name in self.extra
        )


def check_url(base_url: str) -> None:
    """Raise ValueError unless `base_url` is an http(s) address without credentials or query.

    Or names a command of the host, as in `command:agent`.
    """
    if base_url.startswith(COMMAND):
        if not _COMMAND.fullmatch(base_url):
            raise ValueError(
                "base_url: a command name may contain only lowercase letters, digits, - and _"
            )
        return
    try:
        parts = urlsplit(base_url)
        port_is_legal = parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise ValueError(
            "base_url: this is not an address; enter one like https://host/v1"
        ) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_legal:
        raise ValueError("base_url: must be an http or https address like https://host/v1")
    if "@" in parts.netloc:
        raise ValueError("base_url: remove the credentials; keys come from the environment")
    if parts.query or parts.fragment or not base_url.isprintable() or " " in base_url:
        raise ValueError("base_url: must not contain a query, a fragment or spaces")


COMMANDS_VARIABLE = "KBENCH_AGENT_COMMANDS"
"""JSON object of the host's environment: name -> the program and its arguments, a list.

What runs is named there alone, never in a form or in the database: whoever may change it may run
programs on this host anyway. An admin's form chooses one of these names.
"""

_COMMAND_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")


def commands() -> dict[str, list[str]]:
    """The commands that this host names; raises `ValueError` for a setting that is none."""
    text = os.environ.get(COMMANDS_VARIABLE, "").strip()
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        raise ValueError(f"{COMMANDS_VARIABLE} is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError(
            f'{COMMANDS_VARIABLE} must be an object, such as {{"agent": ["agent", "-p"]}}'
        )
    for name, command in found.items():
        words = isinstance(command, list) and command and all(isinstance(w, str) for w in command)
        if not _COMMAND_NAME.fullmatch(name) or not words:
            raise ValueError(
                f"{COMMANDS_VARIABLE}: {name!r} needs a lowercase name and a list of words"
            )
    return found
