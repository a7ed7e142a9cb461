"""The tuner, with a scripted judge whose votes depend on its instructions."""

from __future__ import annotations

from collections.abc import Callable

from runs_app.optimiser.evolve.tuning import Example, Plan, Purpose, Tuner, Want
from tests.unit.runs_app.optimiser.evolve.driving import a_problem

START = "Look at the kernel from its first line to its last. " * 6
TASKS = ("scale", "add")


def examples(train: int = 6, held_out: int = 4) -> list[Example]:
    """Half of each set passes; sources say `semicolon` if they fail."""
    rows = []
    for index in range(train + held_out):
        passes = index % 2 == 0
        task = TASKS[index >= train]
        source = f"void k{index}() {{ {'' if passes else 'missing_semicolon'} }}"
        rows.append(Example(
            key=f"e{index}", task=task, problem=a_problem(task=task, title=task), source=source,
            reference="void good() {}", passes=passes, held_out=index >= train,
            said="CORRECT: fine" if passes else "COMPILE_ERROR: expected ;",
        ))  # fmt: skip
    return rows


def rewritten(words: str) -> str:
    return f"I see why.\n<instructions>\n{START}{words}\n</instructions>"


def judge(want: Want) -> str:
    """Finds the missing semicolon only if told to look for it."""
    prompt = "\n".join(message.content for message in want.prompt.messages)
    fails = "missing_semicolon" in prompt and "LOOK FOR SEMICOLONS" in prompt
    return f"FINAL VERIFICATION ANSWER: {not fails}"


def drive(tuner: Tuner, answer: Callable[[Want], str | None]) -> list[Want]:
    """Answer everything, newest first, until nothing is asked; what was asked."""
    asked: list[Want] = []
    waiting: list[Want] = []
    while True:
        fresh = tuner.ask()
        asked += fresh
        waiting += fresh
        if not waiting:
            return asked
        want = waiting.pop()
        tuner.tell(want, answer(want))


def plan(**overrides: int) -> Plan:
    fields: dict[str, int] = {"generations": 2, "population": 2, "seed": 1}
    return Plan(verifier="compile", start=START, **{**fields, **overrides})


def improving(want: Want) -> str:
    if want.purpose is Purpose.VOTE:
        return judge(want)
    good = want.key[1] == 1 and want.key[2] == 1
    return rewritten("LOOK FOR SEMICOLONS." if good else f"Try {want.key}.")


def shares(tuner: Tuner) -> list[tuple[int, ...]]:
    """What the best of each generation gets right: in training, held out, and unread votes."""
    found = []
    for best in (generation.best for generation in tuner.generations):
        assert best is not None
        counts = (best.count(tuner.examples, held_out=held) for held in (False, True))
        train, held_out = (each for each in counts if each)
        found.append((train.right, train.of, held_out.right, held_out.of, train.unread))
    return found


def test_a_better_prompt_is_found_and_chosen_without_the_held_out_kernels() -> None:
    tuner = Tuner(plan(), examples())
    asked = drive(tuner, improving)
    assert [g.number for g in tuner.generations] == [0, 1]
    assert tuner.best is not None
    assert (tuner.best.generation, tuner.best.slot) == (1, 1)
    assert shares(tuner) == [(3, 6, 2, 4, 0), (6, 6, 4, 4, 0)]
    assert "no mistake" in tuner.reason
    for want in asked:
        if want.purpose is Purpose.IMPROVE:
            text = "\n".join(message.content for message in want.prompt.messages)
            assert "COMPILE_ERROR: expected ;" in text
            assert all(f"void k{index}()" not in text for index in range(6, 10))
    assert drive(Tuner(plan(), examples()), improving) == asked


def test_held_out_votes_never_choose() -> None:
    """A prompt that is perfect on held-out kernels and worse in training is not taken."""

    def answer(want: Want) -> str:
        if want.purpose is Purpose.IMPROVE:
            return rewritten(f"Try {want.key}.")
        held_out = int(want.key[3]) >= 6
        right = examples()[int(want.key[3])].passes
        if want.key[1] == 0:
            return f"FINAL VERIFICATION ANSWER: {not held_out}"
        return f"FINAL VERIFICATION ANSWER: {right if held_out else not right}"

    tuner = Tuner(plan(generations=1), examples())
    drive(tuner, answer)
    assert tuner.best is not None
    assert tuner.best.generation == 0
    assert tuner.generations[1].best is not None


def test_no_readable_vote_is_a_mistake_and_a_failed_call_speaks_for_no_prompt() -> None:
    tuner = Tuner(plan(generations=0), examples())
    drive(tuner, lambda want: "I would rather not say.")
    assert shares(tuner) == [(0, 6, 0, 4, 6)]
    tuner = Tuner(plan(generations=0), examples())
    drive(tuner, lambda want: None if want.key[3] == 0 else judge(want))
    assert shares(tuner) == [(2, 5, 2, 4, 0)]
    tuner = Tuner(plan(), examples())
    drive(tuner, lambda want: None)
    assert (tuner.ask(), tuner.best, "no vote" in tuner.reason) == ([], None, True)
