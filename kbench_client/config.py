"""Which site is asked, and with which token.

A file in the user's configuration folder keeps a token for each site, readable by its owner alone.
`KBENCH_URL` and `KBENCH_TOKEN` come before it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

from kbench_client.exits import Exit, Stop

_DEFAULT_URL = "http://localhost:8000"
_MODE = 0o600


@dataclass(frozen=True, kw_only=True)
class Account:
    """A site's address, without a slash at its end, and a token, which may be empty."""

    url: str
    token: str = field(default="", repr=False)


def path(environment: Mapping[str, str] = os.environ) -> Path:
    """The file that keeps addresses and tokens."""
    folder = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "kbench" / "config.json"


def account(environment: Mapping[str, str] = os.environ) -> Account:
    """The site to ask; the token of one site is never sent to another.

    Raises `Stop` where the address or the file is nothing that can be used.
    """
    kept = _read(path(environment))
    url = address(environment.get("KBENCH_URL") or kept["url"] or _DEFAULT_URL)
    token = environment.get("KBENCH_TOKEN") or kept["tokens"].get(url, "")
    return Account(url=url, token=checked(token) if token else "")


def checked(token: str) -> str:
    """A token that can be sent; raises `Stop`."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise Stop(
            Exit.NO_TOKEN, "is empty, or contains characters that a token can't contain", "token"
        )
    return token


def address(text: str) -> str:
    """A site's address in the one form in which it is kept; raises `Stop`."""
    wrong = Stop(Exit.MISUSE, f"{text!r} is not an address such as https://kbench.example", "url")
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise wrong
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def keep(known: Account, environment: Mapping[str, str] = os.environ) -> Path:
    """Store a token, and its site as the one to ask from now on; returns the file."""
    file = path(environment)
    kept = _read(file)
    tokens = {**kept["tokens"], known.url: known.token}
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    with os.fdopen(number, "w") as out:
        json.dump({"url": known.url, "tokens": tokens}, out, indent=1)
    draft.replace(file)
    return file


def is_open_to_others(file: Path) -> bool:
    """Whether somebody but its owner may read the file."""
    return file.exists() and bool(stat.S_IMODE(file.stat().st_mode) & 0o077)


class _Kept(TypedDict):
    url: str
    tokens: dict[str, str]


def _read(file: Path) -> _Kept:
    if not file.exists():
        return {"url": "", "tokens": {}}
    try:
        found = json.loads(file.read_text())
        return {"url": str(found["url"]), "tokens": dict(found["tokens"])}
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = f"{file} cannot be read ({error}); remove it and run `kbench login`"
        raise Stop(Exit.MISUSE, reason) from None
