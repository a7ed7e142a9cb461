"""Which features this site has: `settings.FEATURES`, and what each of them brings along."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from django.conf import settings


def modules(name: str) -> list[ModuleType]:
    """The module `name` of each feature that has one, in the order of the settings.

    A feature's addresses stand in `urls`, its part of the API in `api`, the jobs of the site's
    workers in `jobs`, and what it does at the core's hooks in `hooks`.
    """
    found = [f"{feature}.{name}" for feature in settings.FEATURES]
    return [import_module(module) for module in found if find_spec(module) is not None]
