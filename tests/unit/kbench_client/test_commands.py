"""The commands of `kbench` against a site: what they do, print, and end with."""

from __future__ import annotations

import functools
import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.verdict import Abi, Direction, Verdict
from kbench_client import config
from runs_app.models import Evaluation, Run, Submission
from tests import factories as make
from tests.unit.kbench_client.conftest import Run as Command
from tests.unit.leaderboard_app.boards.test_board import ranked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site")]


def kernel(home: Path, head: str = "// kbench: task=scale device=cpu mode=test") -> str:
    """A kernel's file."""
    path = home / "mine.cpp"
    path.write_text(f"{head}\n{make.SOURCE}")
    return str(path)


def test_login_keeps_a_token_that_only_its_owner_may_read(
    kbench: Command, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    token = make.make_token(make.make_user(username="ada"))
    ran = kbench("login", "http://localhost/", "--token", token)
    assert (ran.status, ran.err) == (0, "")
    assert "ada at http://localhost, scopes: read, submit" in ran.out
    assert stat.S_IMODE(config.path().stat().st_mode) == 0o600
    monkeypatch.delenv("KBENCH_URL")
    assert config.account() == config.Account(url="http://localhost", token=token)
    assert "submitted anything yet" in kbench("show").out


def test_login_refuses_a_wrong_token_and_keeps_nothing(
    kbench: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for token, word in (("kb_wrong", "valid on this site"), ("a b", "token"), ("é", "token")):
        ran = kbench("login", "--token", token)
        assert (ran.status, word in ran.err) == (4, True)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert (kbench("login").status, config.path().exists()) == (4, False)
    monkeypatch.setenv("KBENCH_TOKEN", "é")
    assert kbench("tasks").status == 4


def test_a_token_is_never_sent_to_another_site(
    monkeypatch: pytest.MonkeyPatch, kbench: Command
) -> None:
    token = make.make_token(make.make_user())
    assert kbench("login", "http://localhost", "--token", token).status == 0
    monkeypatch.setenv("KBENCH_URL", "http://elsewhere.example")
    assert config.account().token == ""
    monkeypatch.setenv("KBENCH_TOKEN", "kb_other")
    assert config.account().token == "kb_other"


def test_a_file_that_others_may_read_is_told_of(kbench: Command) -> None:
    make.make_task_version()
    kbench("login", "http://localhost", "--token", make.make_token(make.make_user()))
    config.path().chmod(0o644)
    assert "other users can read" in kbench("tasks").err
    config.path().write_text("{")
    assert kbench("tasks").status == 2


def test_tasks_are_listed_and_one_becomes_a_folder(kbench: Command, home: Path) -> None:
    make.make_task_version()
    ran = kbench("tasks", "--abi", "c")
    assert ran.status == 0
    assert "scale" in ran.out
    short = kbench("tasks", "--abi", "c", "--json").document
    assert short["tasks"] == [line for line in short["tasks"] if ": c float32" in line]
    assert "titles" in short["left_out"]
    whole = kbench("tasks", "--abi", "c", "--json", "--raw").document
    assert [each["name"] for each in whole] == [each.split(":")[0] for each in short["tasks"]]
    refused = kbench("tasks", "--tag", "nonsense", "--json")
    assert refused.status == 2
    assert refused.document["error"]["field"] == "tag"
    assert kbench("get", "scale").status == 0
    assert "def make_inputs" in (home / "scale/reference.py").read_text()
    readme = (home / "scale/README.md").read_text()
    assert "void scale" in readme
    assert "off by eps × (16 + 4 √L)" in readme
    document = json.loads((home / "scale/task.json").read_text())
    assert make.HIDDEN_WORKLOAD not in json.dumps(document)
    assert "n256" in {each["name"] for each in document["workloads"]}
    again = kbench("get", "scale")
    assert (again.status, "already" in again.err) == (2, True)
    assert kbench("get", "scale", "--force").status == 0
    assert kbench("get", "nothing").status == 2
    assert kbench("get", "../../admin").status == 2


def test_a_kernel_is_submitted_as_its_directives_say(kbench: Command, ada: Any, home: Path) -> None:
    make.make_task_version()
    ran = kbench("submit", kernel(home), "--agent", "evolver", "--json")
    assert ran.status == 0, ran.err
    submission = Submission.objects.get()
    assert ran.document["id"] == str(submission.pk)
    assert ran.document["url"] == f"http://localhost/submissions/{submission.pk}/"
    assert (submission.author, submission.agent.name) == (ada, "evolver")
    evaluation = submission.evaluations.get()
    assert (evaluation.mode, evaluation.device_id) == ("test", "cpu")
    assert "// kbench: task=scale" in submission.source
    marked = kernel(home, "\ufeff// kbench: task=scale device=cpu mode=test")
    entered = kbench("submit", marked, "--json").document
    assert Submission.objects.get(pk=entered["id"]).source.startswith("// kbench")
    left = kbench("quota", "--json").document
    assert (left["left"], left["waiting"]) == (left["per_day"] - 2, 2)
    assert f"{left['left']} of {left['per_day']} submissions" in kbench("quota").out
    ran = kbench("cancel", entered["id"])
    assert (ran.status, ran.out) == (0, f"canceled: scale on cpu, test ({entered['id']})\n")
    assert kbench("cancel", entered["id"]).status == 2
    late = kbench("submit", marked, "--watch", "--timeout", "0")
    assert (late.status, "still QUEUED" in late.err) == (5, True)
    module = home / "mine.py"
    module.write_text("# kbench: task=scale mode=test\nimport torch\ndef forward(x, N): ...\n")
    ran = kbench("submit", str(module), "--quiet")
    assert (ran.status, "it only calls libraries" in ran.err) == (0, True)
    assert Submission.objects.filter(language="python").count() == 1


def test_a_collection_is_entered_file_by_file(kbench: Command, ada: Any, home: Path) -> None:
    make.make_task_version()
    folder = home / "published"
    for name in ("level1/Scale.py", "scale/solution.py", "other/solution.py", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("import torch\ndef forward(x, N): ...\n")
    (folder / "a.cpp").write_text("// kbench: task=scale\n" + make.SOURCE)
    tried = kbench("import", str(folder), "--dry-run", "--json")
    assert not Submission.objects.exists()
    ran = kbench("import", str(folder), "--agent", "evolver", "--json")
    assert ran.status == 1
    rows = {row["file"]: row for row in ran.document}
    assert [row["task"] for row in tried.document] == [row["task"] for row in ran.document]
    assert {name for name, row in rows.items() if row["id"]} == {
        "a.cpp", "level1/Scale.py", "scale/solution.py",
    }  # fmt: skip
    assert "no task other-solution or solution or other" in rows["other/solution.py"]["reason"]
    assert sorted(Submission.objects.values_list("language", flat=True)) == [
        "cpp", "python", "python",
    ]  # fmt: skip
    assert kbench("import", str(home / "config"), "--json").status == 2


def test_wrong_input_is_named_and_enters_nothing(
    kbench: Command, ada: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make.make_task_version()
    cases: tuple[tuple[list[str], str, str], ...] = (
        ([], "// no directive", "task"),
        ([], "// kbench: task=scale devise=cpu", "devise"),
        ([], "// kbench: task", "task"),
        ([], "// kbench: task=scale task=other", "task"),
        ([], "// kbench: task=scale private=perhaps", "private"),
        (["--mode", "turbo"], "// kbench: task=scale", "--mode"),
        (["--min-speedup", "2"], "// kbench: task=scale", "min-speedup"),
        (["--language", "cuda", "--device", "cpu"], "// kbench: task=scale", "language"),
    )
    for words, head, field in cases:
        ran = kbench("submit", kernel(home, head), *words, "--json")
        assert ran.status == 2
        assert field in ran.document["error"]["field"] + ran.document["error"]["reason"]
    (home / "a.txt").write_text("x")
    (home / "b.cpp").write_bytes(b"\xff\xfe")
    (home / "c.cpp").write_bytes(b"x" * ((1 << 20) + 1))
    for name in ("a.txt", "b.cpp", "c.cpp", "missing.cpp", "."):
        assert kbench("submit", str(home / name), "--task", "scale").status == 2
    monkeypatch.setenv("KBENCH_TOKEN", make.make_token(make.make_user(), scopes=["read"]))
    ran = kbench("submit", kernel(home))
    assert (ran.status, "lacks the scope" in ran.err) == (4, True)
    monkeypatch.delenv("KBENCH_TOKEN")
    ran = kbench("submit", kernel(home))
    assert (ran.status, "KBENCH_TOKEN" in ran.err) == (4, True)
    assert not Submission.objects.exists()


def test_watching_ends_with_the_verdict(
    kbench: Command, ada: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make.make_task_version()
    states: list[str] = []
    for verdict, more, status in (
        (Verdict.CORRECT, [], 0),
        (Verdict.CORRECT, ["--min-speedup", "1.4"], 0),
        (Verdict.CORRECT, ["--min-speedup", "1.6"], 6),
        (Verdict.WRONG_RESULT, [], 1),
        (Verdict.SYSTEM_ERROR, [], 3),
    ):

        def advance(_: float, verdict: Verdict = verdict) -> None:
            evaluation = Evaluation.objects.latest("created_at")
            states.append(evaluation.status)
            make.finish(evaluation, verdict=verdict)

        monkeypatch.setattr("kbench_client.site.time.sleep", advance)
        ran = kbench("submit", kernel(home), "--watch", "--json", *more)
        assert (ran.status, ran.document["verdict"]) == (status, verdict), ran.err
        assert "/submissions/" in ran.err
    assert states == ["QUEUED"] * 5


def test_a_board_is_shown(kbench: Command) -> None:
    assert "no results here yet" in kbench("leaderboard").out
    make.make_finished_evaluation(mode="ranked", agent="evolver")
    ran = kbench("leaderboard", "--device", "cpu", "--task", "scale")
    assert (ran.status, "evolver" in ran.out) == (0, True)
    assert kbench("leaderboard", "--by", "agent", "--json").document["by"] == "agent"
    short, whole = (
        kbench("leaderboard", "--task", "scale", "--json", *more).document
        for more in ([], ["--raw"])
    )
    assert ("score_low" in whole["rows"][0], whole["left_out"]) == (True, "")
    assert ("score_low" in short["rows"][0], "intervals" in short["left_out"]) == (False, True)
    assert short["rows"][0]["agent"] == "evolver"
    for by in ("leaders", "matrix", "submission", "model"):
        assert f", by {by}" in kbench("leaderboard", "--by", by).out
    assert "scale" in kbench("leaderboard").out
    assert kbench("leaderboard", "--by", "shoe").status == 2
    for limit in ("0", "-1", "many"):
        assert "1 or more" in kbench("leaderboard", "--limit", limit).err


def test_a_board_names_directions_and_says_how_many_rows_it_has(kbench: Command) -> None:
    both = {"abi": Abi.TORCH, "signature": "", "work": {}, "kernels": ()}
    version = make.make_task_version(directions=tuple(Direction), **both)
    for direction in Direction:
        ranked(version, direction=direction)
    found = kbench("leaderboard").out
    assert ("scale, backward" in found, "rank" in found, "\n2 rows\n" in found) == (
        True, False, True,
    )  # fmt: skip
    assert (
        "1 of 2 rows not shown: use --limit 2 to show all"
        in kbench("leaderboard", "--limit", "1").out
    )
    assert "2 rows" in kbench("leaderboard", "--limit", "100000").out


def test_short_lists_say_that_there_is_more(kbench: Command, ada: Any) -> None:
    assert kbench("tasks", "--q", "nothing at all").out == "no task matches\n"
    for name in ("scale", "shift"):
        make.make_evaluation(user=ada, mode="test", task_version=make.make_task_version(name=name))
    tasks = kbench("tasks", "--limit", "1").out
    assert "1 of 2 tasks not shown: use --limit 2 to show all, --q WORD to search" in tasks
    assert "2 tasks\n" in kbench("tasks").out
    own = Submission.objects.get(task_version__task__slug="scale")
    listed = kbench("show").out
    assert f"{str(own.pk)[:8]}    scale  cpu     test  QUEUED" in listed
    assert str(own.pk) not in listed
    assert f"{own.created_at:%Y-%m-%d %H:%M}" in listed
    assert "more" not in listed
    assert "showing the newest 1; use --limit N to see more" in kbench("show", "--limit", "1").out


def test_a_run_is_started_followed_and_steered(kbench: Command, ada: Any, home: Path) -> None:
    make.make_task_version()
    words = ("run", "scale", "--strategy", "autotune", "--device", "cpu", "--evaluations", "3")
    head = "constexpr int TILE = 32;  // knob: 16 32 64"
    ran = kbench(*words, "--kernel", kernel(home, head), "--json")
    assert ran.status == 0, ran.err
    run = Run.objects.get()
    assert ran.document["id"] == str(run.pk)
    assert ran.document["budget"]["evaluations"] == 3
    assert kbench("run", str(run.pk)).status == 0
    assert kbench("run", str(run.pk)[:8]).status == 0
    late = kbench("run", str(run.pk), "--watch", "--timeout", "0")
    assert late.status == 5
    assert kbench("run", "scale", "--strategy", "magic").status == 2
    both = kbench(*words, "--kernel", "mine.cpp", "--seed-kernel", "best")
    assert (both.status, "not allowed with" in both.err) == (2, True)
    nothing = kbench(*words, "--seed-kernel", "none", "--json").document["error"]
    assert (nothing["field"], nothing["exit"]) == ("seed_kernel", 2)
    assert "required to start a run" in kbench("run", "scale").err
    assert kbench("run", "scale", "--strategy", "autotune", "--parameter", "x").status == 2
    assert_steered(run, kbench)


def assert_steered(run: Run, kbench: Command) -> None:
    steer = functools.partial(kbench, "run", str(run.pk))
    assert steer("--pause", "--json").document["status"] == "PAUSED"
    assert steer("--resume", "--json").document["status"] != "PAUSED"
    more = steer("--extend", "--evaluations", "9", "--json").document
    assert more["budget"]["evaluations"] == 9
    again = steer("--again", "--name", "other", "--evaluations", "5", "--json").document
    assert (again["id"] != str(run.pk), again["budget"]["evaluations"]) == (True, 5)
    assert kbench("run", str(run.pk)[:8], "--stop", "--json").document["status"] == "STOPPED"
    late = steer("--pause")
    assert (late.status, str(run.pk) in late.out) == (2, False)
    assert "can't be combined with" in steer("--pause", "--evaluations", "3").err
    assert "is not a run's id" in kbench("run", "scale", "--stop").err
    assert "not allowed with" in steer("--stop", "--pause").err


def test_a_version_that_does_not_fit_is_told_once(
    kbench: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    make.make_task_version()
    monkeypatch.setattr("kbench_client.site.version", lambda: "0.0.9")
    ran = kbench("tasks")
    assert ran.status == 0
    assert ran.err.count("this client is kbench 0.0.9") == 1
    monkeypatch.setattr("kbench_client.site.version", lambda: "0.1.0")
    assert kbench("tasks").err == ""


def test_what_a_command_does_not_know_or_have_is_told_with_its_own_usage(
    kbench: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = kbench("run", "scale", "--minutes", "5")
    assert (ran.status, "usage: kbench run" in ran.err) == (2, True)
    assert "--minutes 5" in ran.err
    assert "'compile', 'test'" in kbench("submit", "k.cpp", "--mode", "fast").err
    assert "exit status" in kbench("--help").out
    assert (kbench().status, kbench("submit", "--help").status) == (2, 0)
    monkeypatch.setattr("kbench_client.commands.local.missing", lambda: ["torch"])
    ran = kbench("evaluate", kernel(home))
    assert (ran.status, "kbench[runner]" in ran.err) == (2, True)


def test_a_package_that_no_runner_has_is_said_before_anything_is_queued(
    kbench: Command, ada: Any, home: Path
) -> None:
    make.make_task_version()
    make.make_runner(packages={"numba": ""})
    (home / "k.py").write_text("# kbench: task=scale\nimport numba\ndef forward(x, N): return x\n")
    ran = kbench("submit", str(home / "k.py"), "--json")
    assert (ran.status, ran.document["error"]["field"]) == (2, "source")
    assert "(pip install numba)" in ran.document["error"]["reason"]
    assert not Submission.objects.exists()
    make.make_device()  # a module for a GPU needs no device named
    (home / "k.py").write_text("# kbench: task=scale\nimport triton\ndef forward(x, N): return x\n")
    assert kbench("submit", str(home / "k.py")).status == 0
    assert Submission.objects.get().evaluations.get().device_id == "nvidia-h200"


def test_evaluate_leaves_the_device_of_a_module_to_gpu_runner(
    kbench: Command, home: Path, asked: list[list[str]]
) -> None:
    (home / "k.py").write_text("import triton\n")
    for more in ([], ["--device", "cpu"]):
        kbench("evaluate", str(home / "k.py"), "--folder", str(home), *more)
    (home / "k.cpp").write_text("int x;")
    kbench("evaluate", str(home / "k.cpp"), "--folder", str(home))
    given = [words[words.index("--device") + 1] if "--device" in words else "" for words in asked]
    assert given == ["", "cpu", "cpu"]
