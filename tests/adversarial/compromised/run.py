"""Tries the whole catalogue against a real site."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.adversarial.compromised import forged, guests, host, posing, reading, sabotage
from tests.adversarial.compromised.contract import CATALOGUE, Attack, NotStopped
from tests.adversarial.compromised.world import World

MODULES = (reading, forged, guests, host, posing, sabotage)
"""What is tried, in this order: the calm ones first."""
COLUMNS = ("attack", "through", "stopped by", "answer seen", "")


@dataclass(frozen=True)
class Seen:
    """What came of one attack through one door."""

    attack: Attack
    door: str
    stopped: bool
    answer: str
    seconds: float

    def cells(self) -> tuple[str, ...]:
        """The line under `COLUMNS`."""
        answer = " ".join(self.answer.split())[:100]
        verdict = "ok" if self.stopped else "NOT STOPPED"
        return (self.attack.name, self.door, self.attack.stopped_by, answer, verdict)


def catalogue(only: str = "") -> list[tuple[Attack, str]]:
    """Every attack with each of its doors; those whose names match a regular expression."""
    return [(each, kind) for each in CATALOGUE for kind in each.doors if re.search(only, each.name)]


def tried(folder: Path, only: str = "") -> Iterator[Seen]:
    """Start a site with its data in `folder`, and try them one after another."""
    world = World(folder / "data")
    try:
        for attack, kind in catalogue(only):
            yield _try(world, attack, kind)
    finally:
        world.close()


def _try(world: World, attack: Attack, kind: str) -> Seen:
    began = time.monotonic()
    try:
        answer, stopped = attack.run(world, world.door(kind)), True
    except NotStopped as error:
        answer, stopped = str(error), False
        world.heal()
    except Exception as error:  # the attack itself failed: nobody knows
        answer, stopped = f"{type(error).__name__}: {error}", False
        world.heal()
    return Seen(attack, kind, stopped, answer, time.monotonic() - began)


def show(only: str = "") -> int:
    """Print the section of the red team's report; 1 if an attack was not stopped."""
    print("\ncompromised runner\n" + " | ".join(COLUMNS), flush=True)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="compromised-") as folder:
        for seen in tried(Path(folder), only):
            print(f"{' | '.join(seen.cells())} | {seen.seconds:.1f} s", flush=True)
            missed += not seen.stopped
    print(f"\n{len(catalogue(only))} attacks, {missed} not stopped")
    return int(missed > 0)
