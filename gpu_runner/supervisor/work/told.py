"""What follows from who was seen at work: nothing, or a suspicion that says what was seen."""

from __future__ import annotations

import math

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.protocol import BY_CHANCE, LEAST_TOLD, LIBRARY_SHARE, WATCHED_SLOWER
from gpu_runner.supervisor.work.attribution import Worked


def is_told(worked: Worked | None) -> bool:
    """Whether enough work was seen to say whose it was."""
    return worked is not None and (worked.seen >= LEAST_TOLD or is_of_libraries(worked))


def is_of_libraries(worked: Worked) -> bool:
    """Whether libraries did more of the work than they may, beyond chance."""
    seen, theirs = worked.seen, worked.libraries.total()
    if theirs <= LIBRARY_SHARE * seen:
        return False
    if not worked.is_sampled:
        return True
    at_most = [
        math.comb(seen, n) * LIBRARY_SHARE**n * (1 - LIBRARY_SHARE) ** (seen - n)
        for n in range(theirs)
    ]
    return 1 - math.fsum(at_most) <= BY_CHANCE * (1 + 1e-6)


def work_suspicions(worked: Worked) -> list[Suspicion]:
    """Why a task that forbids libraries holds a result back, as far as what ran tells."""
    found = []
    if is_of_libraries(worked):
        most = worked.told().libraries.most_common()
        named = [(name, n / worked.seen) for name, n in most if n > LIBRARY_SHARE * worked.seen]
        words = ", ".join(f"{name} did {share:.0%}" for name, share in named or _together(worked))
        reason = f"{words} of the work of {worked.workload}, and this task allows no libraries"
        found.append(Suspicion(check=Check.WORK, reason=reason))
    if worked.slower > WATCHED_SLOWER:
        is_public = worked.told() is worked
        longer = f"{worked.slower:.1f} times as long" if is_public else "much longer"
        reason = (
            f"calls of {worked.workload} took {longer} once the process could tell that it was "
            "being watched, so what we saw may differ from what we timed"
        )
        found.append(Suspicion(check=Check.WORK, reason=reason))
    return found


def unknown_share(worked: Worked) -> Suspicion:
    """What is said of a GPU's kernel whose host calls a library, where no profiler tells more."""
    name, _ = worked.libraries.most_common(1)[0]
    reason = f"calls {name}, and no profiler on this host can tell how much of the work it did"
    return Suspicion(check=Check.WORK, reason=reason)


def _together(worked: Worked) -> list[tuple[str, float]]:
    return [("libraries together", worked.libraries.total() / worked.seen)]
