"""`kbench mcp`: the client as tools of an agent."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable

from kbench_client.exits import Exit, Stop
from kbench_client.output import Output
from kbench_client.site import Site


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    parser = command("mcp", "run an MCP server for an agent, on standard input and output")
    parser.set_defaults(run=_mcp)


def _mcp(options: argparse.Namespace, site: Site, output: Output) -> Exit:
    if importlib.util.find_spec("mcp") is None:
        guide = f"{site.account.url}/agents.md"
        raise Stop(Exit.MISUSE, f"needs this client's `mcp` extra; {guide} says how to add it")
    from kbench_client.mcp_server.serving import server

    server(site).run("stdio")
    return Exit.GOOD
