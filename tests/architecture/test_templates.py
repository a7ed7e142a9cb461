"""Templates point one way, as imports do: none uses what stands above its app."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.template import engines
from django.template.backends.django import DjangoTemplates

ROOT = Path(__file__).parents[2]
FEATURES = ROOT / "runs_app" / "features"
FOLDERS = (ROOT / "templates", *sorted(FEATURES.glob("*/templates")))
"""Where templates lie: the site's, and each feature's own."""

ORDER = ("tasks_app", "runs_app", "leaderboard_app", "kbench_web", "runs_app.features")
"""From the bottom to the top, as the import contracts have it."""
COLUMNS = 100
SHARED = -1
"""The place of templates that anybody includes, and of tags that are Django's or a library's."""

_TAG = re.compile(r"\{%\s*(load|include|extends)\s+(.*?)\s*%\}", re.DOTALL)
_NAME = re.compile(r"""["']([\w/]+\.html)["']""")


def place_of(dotted: str) -> int:
    """Where a module, or a template's folders joined by dots, stands in `ORDER`."""
    for place, layer in sorted(enumerate(ORDER), key=lambda each: -len(each[1])):
        if f"{dotted}.".startswith(f"{layer}."):
            return place
    return SHARED


def place_of_template(name: str) -> int:
    """Shared parts stand at the bottom; the site's frame and its error pages at the top."""
    folder = name.rpartition("/")[0]
    if feature_of(name):
        return ORDER.index("runs_app.features")
    return ORDER.index("kbench_web") if not folder else place_of(folder.replace("/", "."))


def file_of(name: str) -> Path | None:
    """The file of that template, if it is one of ours."""
    return next((each / name for each in FOLDERS if (each / name).is_file()), None)


def feature_of(name: str) -> str:
    """The feature whose template it is, or empty."""
    path = file_of(name)
    found = path is not None and path.is_relative_to(FEATURES)
    return path.relative_to(FEATURES).parts[0] if path and found else ""


def libraries() -> dict[str, str]:
    """The module of each library of tags, by the name that templates load."""
    backend = engines["django"]
    assert isinstance(backend, DjangoTemplates)
    return dict(backend.engine.libraries)


def uses(name: str) -> list[tuple[str, int]]:
    """What a template loads, includes and extends, each with its place.

    The frame of all pages may be extended from below: it is filled, and shows nothing by itself.
    """
    found = []
    path = file_of(name)
    assert path is not None
    for kind, rest in _TAG.findall(path.read_text()):
        if kind == "load":
            known = libraries()
            found += [(library, place_of(known[library])) for library in rest.split()]
            continue
        target = rest.split()[0].strip("\"'")
        if target == "admin/base.html":
            continue  # Django's own
        assert file_of(target), f"{name}: {kind} {rest}: say which, by name"
        if kind == "include" or target != "base.html":
            found.append((target, place_of_template(target)))
    return found


def names() -> list[str]:
    """All templates, by the names under which they are found."""
    return sorted(str(path.relative_to(each)) for each in FOLDERS for path in each.rglob("*.html"))


def test_the_order_is_that_of_the_import_contracts() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert (
        'layers = ["kbench_web", "leaderboard_app", "runs_app", "tasks_app", "gpu_runner"]' in text
    )


def test_no_template_uses_what_stands_above_its_app() -> None:
    known = [(name, *use) for name in names() for use in uses(name)]
    assert len(known) > 100
    upward = [f"{name}: {used}" for name, used, place in known if place > place_of_template(name)]
    assert not upward


def test_no_feature_uses_a_template_of_another() -> None:
    owners = {name: owner for name in names() if (owner := feature_of(name))}
    assert owners
    foreign = [
        f"{name}: {used}"
        for name, owner in owners.items()
        for used, _ in uses(name)
        if owners.get(used, owner) != owner
    ]
    assert not foreign


def test_no_module_renders_a_template_from_above() -> None:
    rendered = [
        (path.relative_to(ROOT), name)
        for app in ("kbench_web", "leaderboard_app", "runs_app", "tasks_app")
        for path in sorted((ROOT / app).rglob("*.py"))
        for name in _NAME.findall(path.read_text())
        if file_of(name)
    ]
    assert len(rendered) > 30
    module_of = {path: ".".join(path.with_suffix("").parts) for path, _ in rendered}
    upward = [
        f"{path}: {name}"
        for path, name in rendered
        if place_of_template(name) > place_of(module_of[path])
    ]
    assert not upward


_UNBREAKABLE = re.compile(r"\{[%{#].*?[%}#]\}|\"[^\"]*\"|'[^']*'")
"""Django's tags and texts in quotes, in which a line cannot end."""


@pytest.mark.parametrize("name", names())
def test_lines_are_short(name: str) -> None:
    path = file_of(name)
    assert path is not None
    long = [
        f"{path.name}:{number}: {line.strip()[:60]}"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > COLUMNS and len(_UNBREAKABLE.sub("", line)) > COLUMNS
    ]
    assert not long


def test_no_variable_is_broken_over_lines() -> None:
    """Django would show it as it stands."""
    paths = [path for folder in FOLDERS for path in folder.rglob("*.html")]
    broken = [
        f"{path.name}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.count("{{") != line.count("}}") or line.count("{%") != line.count("%}")
    ]
    assert broken == []


def test_no_label_is_broken_over_lines() -> None:
    paths = [path for folder in FOLDERS for path in folder.rglob("*.html")]
    broken = [path.name for path in paths if re.search(r'aria-label="[^"]*\n', path.read_text())]
    assert broken == []
