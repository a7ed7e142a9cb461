"""Each part imports with its own packages: a site without torch, a runner without Django.

The client, which is what an installation without extras holds, needs neither, nor Redis.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DATA = ("tasks_app.catalog", "tasks_app.example")  # tasks, which nobody imports
FOR_MCP = ("kbench_client.mcp_server",)
FOR_VERIFIERS = ("kbench_client.evaluators.verifiers_environment",)  # another project's package
HALVES = {
    "client": ("kbench_client",),
    "mcp": ("kbench_client",),
    "site": ("kbench_web", "leaderboard_app", "runs_app", "tasks_app", "gpu_runner.data"),
    "runner": ("gpu_runner",),
}
IMPORT_ALL = """
import importlib, json, os, pkgutil, sys

packages, hidden, data = json.loads(sys.argv[1])

class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        absent = name.partition(".")[0] in hidden
        return None if absent else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
if "kbench_web" in packages:
    os.environ["DJANGO_SETTINGS_MODULE"] = "kbench_web.settings"
    import django
    django.setup()
for package in map(importlib.import_module, packages):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.startswith(tuple(data)) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(len(sys.modules))
"""


def needed(requirements: list[str], extra: str = "") -> set[str]:
    """Names of the distributions that requirements lead to, as they are installed here."""
    names: set[str] = set()
    waiting = [(Requirement(text), extra) for text in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, for_extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": for_extra}):
            continue
        name = canonicalize_name(requirement.name)
        names.add(name)
        for wanted in ("", *requirement.extras):
            if (name, wanted) in seen:
                continue
            seen.add((name, wanted))
            waiting += [(Requirement(text), wanted) for text in metadata.requires(name) or ()]
    return names


def test_a_requirement_leads_to_what_it_requires() -> None:
    found = needed(["redis[hiredis]", "django; extra == 'site'"])
    assert "hiredis" in found
    assert "django" not in found
    assert "asgiref" in needed(["django; extra == 'site'"], "site")


@pytest.mark.parametrize("half", HALVES)
def test_a_half_imports_without_the_packages_of_the_other(half: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    own = {project["name"], *needed([*project["dependencies"], *extras.get(half, ())])}
    hidden = [
        module
        for module, names in metadata.packages_distributions().items()
        if not own & {*map(canonicalize_name, names)}
    ]
    assert ("torch" in hidden, "django" in hidden) == (half != "runner", half != "site")
    assert ("redis" in hidden, "mcp" in hidden) == (half in ("client", "mcp"), half != "mcp")
    about = json.dumps(
        [HALVES[half], hidden, (*DATA, *FOR_VERIFIERS, *(FOR_MCP if half == "client" else ()))]
    )
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, about],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
