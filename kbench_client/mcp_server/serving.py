"""Serves the tools over the Model Context Protocol: checks arguments, and words refusals."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import anyio.to_thread
from mcp import types
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from kbench_client import version
from kbench_client.exits import Stop
from kbench_client.mcp_server.challenges import ChallengeTools
from kbench_client.mcp_server.tools import NEWS, Tools
from kbench_client.site import Site

Document = dict[str, Any]
Tool = Callable[..., object]
_BEAT_S = 5.0  # chosen: clients that give up without progress wait longer than this

_ABOUT = """Measure compute kernels on a kbench site: call get_task, write a kernel, submit it in
mode test, wait, fix what the reason points out, then submit it in mode ranked. Submissions are
public unless you make them private. In a challenge, entry says what is left of your
budget."""


class _Server(MCPServer):
    """Refuses arguments that a tool doesn't have; otherwise they would be left out."""

    async def list_tools(self) -> list[types.Tool]:
        """All tools; each says that it takes no other arguments."""
        found = await super().list_tools()
        for tool in found:
            tool.input_schema = {**tool.input_schema, "additionalProperties": False}
        return found

    async def call_tool(self, name: str, arguments: Document, context: Any = None) -> Any:
        """Call a tool; raises `ToolError` with the names of unknown arguments."""
        known = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
        if name in known and (unknown := [each for each in arguments if each not in known[name]]):
            raise ToolError(
                f"{name} has no argument {', '.join(map(repr, unknown))}; nothing was done."
                f" Its arguments: {', '.join(known[name])}"
            )
        news = ["working"]
        NEWS.set(news)
        beat = asyncio.create_task(_beat(context, news))
        try:
            return await super().call_tool(name, arguments, context)
        finally:
            beat.cancel()


async def _beat(context: Any, news: Sequence[str]) -> None:
    """Tell a client that asked for progress what the tool is waiting for."""
    started = time.monotonic()
    while context is not None:
        await asyncio.sleep(_BEAT_S)
        await context.report_progress(time.monotonic() - started, message=news[-1])


def server(site: Site) -> MCPServer:
    found: MCPServer = _Server("kbench", instructions=_ABOUT, version=version())
    for tools in (Tools(site), ChallengeTools(site)):
        for name in vars(type(tools)):
            if not name.startswith("_"):
                found.tool()(_in_a_thread(getattr(tools, name)))
    return found


def _in_a_thread(tool: Tool) -> Callable[..., Coroutine[object, object, object]]:
    """The tool as the protocol wants it: it blocks nobody, and a refusal is told to the agent."""

    @functools.wraps(tool)
    async def run(**given: Any) -> Any:
        try:
            return await anyio.to_thread.run_sync(functools.partial(tool, **given))
        except Stop as error:
            raise ToolError(str(error)) from None

    return run
