"""The client: kbench from the command line, from scripts and from agents; no Django, no torch."""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import Any

__all__ = ["KbenchEnv", "KbenchHarness", "KbenchTaskset", "version"]  # `verifiers` reads it


def __getattr__(name: str) -> Any:
    """What `verifiers` finds here by the name `kbench-client`; imports that package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module("kbench_client.evaluators.verifiers_environment")
    return getattr(module, name)


def version() -> str:
    """Version of this installation; empty where it is not installed."""
    try:
        return metadata.version("kbench")
    except metadata.PackageNotFoundError:
        return ""
