"""`kbench login`: keep a token for a site."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Callable

from kbench_client import config
from kbench_client.exits import Exit
from kbench_client.output import Output
from kbench_client.site import Site

_LOCAL = ("http://localhost", "http://127.0.0.1", "http://[::1]")


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    parser = command("login", "store a token from the site's /account/ page")
    parser.add_argument("site", nargs="?", default="", help="such as https://kbench.example")
    parser.add_argument(
        "--token",
        default="",
        help="the token (default: ask for it, or read it from standard input)",
    )
    parser.set_defaults(run=_login)


def _login(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    url = config.address(options.site) if options.site else site.account.url
    account = config.Account(url=url, token=config.checked(options.token or _ask(url)))
    asked = Site(account, warn=output.warn)
    try:
        about = asked.about()
    finally:
        asked.close()
    if not url.startswith("https://") and not url.startswith(_LOCAL):
        output.warn(f"{url} is not encrypted: anyone on the network path can read the token")
    file = config.keep(account)
    shown = {"url": url, "user": about["user"], "scopes": about["scopes"], "file": str(file)}
    scopes = ", ".join(about["scopes"])
    output.answer(shown, f"{about['user']} at {url}, scopes: {scopes}; the token is in {file}")
    return Exit.GOOD


def _ask(url: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    return getpass.getpass(f"token (create one at {url}/account/): ").strip()
