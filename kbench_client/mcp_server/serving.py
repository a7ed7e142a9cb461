"""Serves the tools over the Model Context Protocol: checks arguments, and words refusals."""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import anyio.to_thread
from mcp import types
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kbench_client import version
from kbench_client.exits import Stop
from kbench_client.mcp_server.challenges import ChallengeTools
from kbench_client.mcp_server.tools import NEWS, Tools
from kbench_client.site import Document, Site

Tool = Callable[..., object]
_ENVIRONMENT = "in the environment of `kbench mcp`"
_IN_TOOLS = (
    ("set --task NAME, or write", "set task, or write"),
    ("see /api/v1/tasks", "list_tasks lists them all"),
    ("run `kbench login`, or set KBENCH_TOKEN", f"set KBENCH_TOKEN {_ENVIRONMENT}"),
    ("set KBENCH_URL, or run `kbench login URL`", f"set KBENCH_URL {_ENVIRONMENT}"),
)
"""What refusals recommend to people and programs, and what an agent does instead."""
_BEAT_S = 5.0  # chosen: clients that give up without progress wait longer than this

_ABOUT = """Measure compute kernels on a kbench site: call get_task, write a kernel, submit it in
test mode, wait, fix what the reason points out, then submit it in ranked mode. Submissions are
public unless you make them private. In a challenge, entry shows what is left of your
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
        """Call a tool; raises `ToolError` in words that fit the tools."""
        known = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
        if name in known and (unknown := [each for each in arguments if each not in known[name]]):
            reason = f"it doesn't accept {', '.join(map(repr, unknown))}"
            raise ToolError(_not_called(name, reason, known[name]))
        news = ["working"]
        NEWS.set(news)
        beat = asyncio.create_task(_beat(context, news))
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                reason = "; ".join(map(_fault, error.__cause__.errors()))
                raise ToolError(_not_called(name, reason, known[name])) from None
            raise ToolError(str(error.__cause__ or error)) from None
        finally:
            beat.cancel()


def _not_called(name: str, reason: str, arguments: Iterable[str]) -> str:
    return f"{name} was not called: {reason}. Its arguments: {', '.join(arguments)}"


def _fault(found: ErrorDetails) -> str:
    """What is wrong with an argument."""
    argument = ".".join(map(str, found["loc"]))
    if found["type"] == "missing":
        return f"{argument} is missing"
    return f"{argument} can't be {found['input']!r:.80} ({found['msg']})"


async def _beat(context: Any, news: Sequence[str]) -> None:
    """Tell a client that asked for progress what the tool is waiting for."""
    started = time.monotonic()
    while context is not None:
        await asyncio.sleep(_BEAT_S)
        await context.report_progress(time.monotonic() - started, message=news[-1])


def server(site: Site) -> MCPServer:
    found: MCPServer = _Server(
        "kbench", instructions=_ABOUT, version=version(), log_level="WARNING"
    )
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
            return _answer(await anyio.to_thread.run_sync(functools.partial(tool, **given)))
        except Stop as error:
            reason = str(error)
            for ours, theirs in _IN_TOOLS:
                reason = reason.replace(ours, theirs)
            raise ToolError(reason) from None

    return run


def _answer(found: object) -> types.CallToolResult:
    """What a tool found, as compact JSON, or a text with a line each."""
    if isinstance(found, list) and all(isinstance(each, str) for each in found):
        text = "\n".join(found) or "There are none."
    else:
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    structured = found if isinstance(found, dict) else {"result": found}
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=structured)
