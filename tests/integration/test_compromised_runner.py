"""Somebody who took a runner over gets no further than docs/lend-a-gpu.md says.

Some attacks flood the site, and all of them wait for its answers, however long those take.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adversarial.compromised import inventing
from tests.adversarial.compromised.contract import Attack
from tests.adversarial.compromised.run import catalogue
from tests.adversarial.compromised.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One site for all attacks; none asks for its styles, whose compression takes ten seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBENCH_COLLECTED_FILES", "0")
        running = World(tmp_path_factory.mktemp("site") / "data")
        yield running
        running.close()


def test_a_result_that_fits_together_is_believed(world: World) -> None:
    """Otherwise the lies below would be refused for some other reason."""
    door = world.mallory
    order = world.held(door)
    door.say(door.about(order, "finished", 9, {"result": inventing.invented(order)}))
    world.heard(door)
    assert world.verdict(order.job_id) == "CORRECT"


@pytest.mark.sampled(100)
@pytest.mark.parametrize(
    ("attack", "kind"), catalogue(), ids=lambda each: getattr(each, "name", each)
)
def test_it_is_stopped(world: World, attack: Attack, kind: str) -> None:
    attack.run(world, world.door(kind))


def test_the_site_goes_on_after_all_of_them(world: World) -> None:
    world.check_alive()
