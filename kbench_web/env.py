"""Typed readers of environment variables that say what is wrong and how to put it right."""

from __future__ import annotations

import os
import secrets
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


def text(name: str, default: str) -> str:
    """Value of the variable without surrounding blanks, or `default` where it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def flag(name: str, *, default: bool) -> bool:
    """Value of a yes-or-no variable; raises `ImproperlyConfigured` on any other word."""
    value = text(name, "").lower()
    if not value:
        return default
    if value in _TRUE | _FALSE:
        return value in _TRUE
    raise ImproperlyConfigured(f"{name} is {value!r}; set it to 1 or 0.")


def whole(name: str, default: int, *, least: int = 0) -> int:
    """Value of a whole-number variable, at least `least`; raises `ImproperlyConfigured`."""
    value = text(name, str(default))
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {value!r}; set it to a whole number.") from None
    if number < least:
        raise ImproperlyConfigured(f"{name} is {number}; the minimum is {least}.")
    return number


def number(name: str, default: float) -> float:
    """Value of a variable that is 0 or more and finite; raises `ImproperlyConfigured`."""
    value = text(name, str(default))
    try:
        found = float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {value!r}; set it to a number.") from None
    if not 0 <= found < float("inf"):
        raise ImproperlyConfigured(f"{name} is {value}; set it to 0 or more.")
    return found


def words(name: str, default: list[str]) -> list[str]:
    """Value of a variable that holds a comma-separated list."""
    value = text(name, "")
    return [part.strip() for part in value.split(",") if part.strip()] if value else default


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Addresses and networks of a comma-separated list; raises `ImproperlyConfigured`."""
    found: list[IPv4Network | IPv6Network] = []
    for word in words(name, []):
        try:
            found.append(ip_network(word))
        except ValueError as error:
            raise ImproperlyConfigured(
                f"{name} contains {word!r}, which is neither an address nor a network: {error}."
            ) from None
    return found


def one_of(name: str, default: str, choices: tuple[str, ...]) -> str:
    """Value of a variable that knows these words alone; raises `ImproperlyConfigured`."""
    value = text(name, default)
    if value not in choices:
        raise ImproperlyConfigured(f"{name} is {value!r}; set it to one of {', '.join(choices)}.")
    return value


def email(url: str) -> dict[str, object]:
    """Django's settings of the mail server at `url`; raises `ImproperlyConfigured`."""
    try:
        return dict(environ.Env.email_url_config(url))
    except (KeyError, ValueError, environ.ImproperlyConfigured):
        raise ImproperlyConfigured(
            "KBENCH_EMAIL_URL is not a valid mail server address; write it as"
            " smtp+tls://user:password@host:587"
        ) from None


def sign_in_providers() -> dict[str, Any]:
    """Where people may sign in beside here, as django-allauth has it; empty where none is set."""
    found: dict[str, Any] = {}
    if identity := text("KBENCH_GITHUB_CLIENT_ID", ""):
        github = {
            "client_id": identity,
            "secret": text("KBENCH_GITHUB_CLIENT_SECRET", ""),
            "key": "",
        }
        found["github"] = {"APPS": [github], "SCOPE": ["read:user"]}
    if url := text("KBENCH_OIDC_URL", ""):
        oidc = {
            "provider_id": "oidc",
            "name": text("KBENCH_OIDC_NAME", "OpenID Connect"),
            "client_id": text("KBENCH_OIDC_CLIENT_ID", ""),
            "secret": text("KBENCH_OIDC_CLIENT_SECRET", ""),
            "settings": {"server_url": url, "oauth_pkce_enabled": True},
        }
        found["openid_connect"] = {"APPS": [oidc]}
    for provider, settings in found.items():
        if not all((settings["APPS"][0]["client_id"], settings["APPS"][0]["secret"])):
            names = _CREDENTIALS[provider]
            raise ImproperlyConfigured(f"set both {names}: sign-in requires both.")
    return found


_CREDENTIALS = {
    "github": "KBENCH_GITHUB_CLIENT_ID and KBENCH_GITHUB_CLIENT_SECRET",
    "openid_connect": "KBENCH_OIDC_CLIENT_ID and KBENCH_OIDC_CLIENT_SECRET",
}


def sign_in_origins() -> list[str]:
    """Origins to which a form on the sign-in page may lead."""
    parts = urlsplit(text("KBENCH_OIDC_URL", ""))
    github = ["https://github.com"] if text("KBENCH_GITHUB_CLIENT_ID", "") else []
    return [*github, *([f"{parts.scheme}://{parts.netloc}"] if parts.netloc else [])]


def kept_url(folder: Path, otherwise: str = "redis://127.0.0.1:6379/0") -> str:
    """Address of the Redis that `make up` runs with its data in `folder`, if it does."""
    try:
        return (folder / "url").read_text().strip()
    except OSError:
        return otherwise


def secret(name: str, path: Path, *, production: bool) -> str:
    """The site's secret key.

    Production takes it from the variable alone and refuses a missing or short one. Elsewhere it is
    drawn once for each installation and kept in `path`, so that no default secret exists.
    """
    value = text(name, "")
    if production and len(value) < _SECRET_LENGTH:
        raise ImproperlyConfigured(
            f"{name} must have at least {_SECRET_LENGTH} random characters in production; generate"
            ' one with: python -c "import secrets; print(secrets.token_urlsafe(64))"'
        )
    return value or _kept_secret(path)


_SECRET_LENGTH = 50


def write_secret(path: Path, text: str) -> None:
    """Write what nobody else may read, whole or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(text)
    draft.replace(path)


def _kept_secret(path: Path) -> str:
    """The secret in `path`; made first if there is none. Two first starts agree on one secret."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # all the site's data will be there
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(64))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was first; its secret counts
        finally:
            draft.unlink()
    return path.read_text().strip()
