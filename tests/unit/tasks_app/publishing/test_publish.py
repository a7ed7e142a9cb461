"""Tasks become versions, and versions never change."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tasks_app import disclosure, selectors
from tasks_app.models import Task
from tasks_app.publishing.services import publish
from tests import factories as make

pytestmark = pytest.mark.django_db

TASK_TOML = """
name = "double"
title = "Double a vector"
abi = "c"
signature = "void twice(float* out, const float* x, int N)"
[[workloads]]
name = "small"
parameters = { N = 8 }
"""
UNPROVEN = ("--publish-unproven", "a test")
REFERENCE = 'def make_inputs(N):\n    return {"x": None}\n\n\ndef forward_fn(x):\n    return x\n'


def write_task(folder: Path, toml: str = TASK_TOML, reference: str = REFERENCE) -> Path:
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(toml)
    (folder / "reference.py").write_text(reference)
    return folder


def test_a_changed_task_alone_gets_the_next_version_and_can_go_back() -> None:
    first = publish(data=make.make_task(), now=make.NOW)
    again = publish(data=make.make_task(), now=make.later(1))
    assert (first.is_new, again.is_new) == (True, False)
    assert first.version == again.version
    assert first.version.data == make.make_task()
    assert first.version.data.digest() == first.version.digest

    second = publish(data=make.make_task(title="Better"), now=make.NOW).version
    task = Task.objects.get()
    assert (second.number, task.title, task.current_version) == (2, "Better", second)
    publish(data=make.make_task(), now=make.NOW)
    task.refresh_from_db()
    assert (task.current_version.number, task.title) == (1, "Scale a vector")
    assert task.versions.count() == 2
    second.number = 7
    with pytest.raises(TypeError, match="never changes"):
        second.save()
    open_task = make.make_task(name="open", workloads=make.make_task().workloads[:2])
    whole = publish(data=open_task, now=make.NOW).version  # it hides nothing
    assert disclosure.public_task(whole.document) == whole.document
    Task.objects.filter(slug="open").update(state=Task.State.DRAFT)
    assert [each.slug for each in selectors.published_tasks()] == ["scale"]
    assert selectors.find_task("open") is None


def test_the_command_loads_a_folder_of_tasks(tmp_path: Path) -> None:
    write_task(tmp_path / "double")
    (tmp_path / "_drafts").mkdir()
    out = io.StringIO()
    call_command("load_tasks", str(tmp_path), *UNPROVEN, stdout=out)
    said = out.getvalue().splitlines()
    assert (said[0], "_drafts" in said[1]) == ("loaded  double v1  published", True)
    call_command("load_tasks", str(tmp_path / "double"), stdout=out)
    assert "loaded  double v1  unchanged\n" in out.getvalue()
    Task.objects.update(state=Task.State.RETIRED)
    (tmp_path / "double" / "task.toml").write_text(TASK_TOML.replace("Double", "Twice"))
    call_command("load_tasks", str(tmp_path / "double"), *UNPROVEN, stdout=out)
    assert "loaded  double v2  retired\n" in out.getvalue()


def test_the_command_loads_what_it_can_and_names_the_rest(tmp_path: Path) -> None:
    write_task(tmp_path / "double")
    write_task(tmp_path / "broken", toml=TASK_TOML.replace('abi = "c"', 'abi = "d"'))
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 refused for the reason above"):
        call_command("load_tasks", str(tmp_path), *UNPROVEN, stdout=out)
    assert "task.toml, line 4: abi: 'd' is not one of" in out.getvalue()
    assert [task.slug for task in selectors.published_tasks()] == ["double"]
    write_task(tmp_path / "alone", toml="name =")
    for name, words in (("alone", "not valid TOML"), ("nowhere", "does not exist")):
        with pytest.raises(CommandError, match="1 refused"):
            call_command("load_tasks", str(tmp_path / name), stdout=out)
        assert words in out.getvalue()


def test_loading_executes_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    reference = f"open({str(mark)!r}, 'w').close()\n" + REFERENCE
    write_task(tmp_path / "tasks" / "double", reference=reference)
    call_command("load_tasks", str(tmp_path / "tasks"), stdout=io.StringIO())
    assert not mark.exists()


def test_names_of_hidden_workloads_are_replaced_as_whole_words() -> None:
    text = "n1: n1_large, n1, (n1) n11"
    assert disclosure.public_text(text, ["n1"]) == (
        "a hidden workload: n1_large, a hidden workload, (a hidden workload) n11"
    )
    assert disclosure.public_text(text, []) == text
