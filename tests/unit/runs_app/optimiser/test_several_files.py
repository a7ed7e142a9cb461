"""A run that begins with several files changes the entry, and keeps the others."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.verdict import Language
from runs_app.core.errors import SubmissionError
from runs_app.models import Run, Submission
from runs_app.optimiser.services.request import read_run_request, request_of
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Start, World

pytestmark = pytest.mark.django_db

FILES = {"in/sum.h": "int sum;\n", "b.h": "int b;\n"}
OWN: dict[str, Any] = {
    "seed_kernel": "own",
    "source": f'#include "in/sum.h"\n{make.SOURCE}',
    "entry": "main.cpp",
    "files": FILES,
}


def test_every_candidate_has_the_files(start: Start, world: World) -> None:
    run = start(**OWN)
    world.to_the_end(run)
    kernels = [each.solution for each in Submission.objects.filter(run=run)]
    assert len(kernels) == 1 + 3
    assert {each.name for each in kernels} == {"main.cpp"}
    assert all(each.files == FILES for each in kernels)
    assert len({each.source for each in kernels}) == len(kernels)
    again = read_run_request(request_of(run))
    assert (again.source, again.entry, again.files) == (OWN["source"], "main.cpp", FILES)


def test_a_seed_of_one_file_is_stored_as_before(start: Start) -> None:
    assert not {"seed_entry", "seed_files"} & start().problem.keys()


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"entry": "main.cu"}, "entry", "must end with .cpp"),
        ({"files": {"../b.h": "int b;"}}, "files", "must be a relative path"),
        ({"files": {"b.py": "b = 1"}}, "files", "must end with one of"),
        ({"files": {"b.h": 1}}, "files.b.h", "must be str"),
        ({"source": '#include "b.h"\n'}, "source", "main.cpp must define"),
    ],
)
def test_files_that_no_candidate_could_have_are_refused(
    start: Start, change: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(SubmissionError, match=words) as refused:
        start(**OWN | change)
    assert refused.value.field == field


def test_the_form_takes_a_submissions_files(client: Client, world: World, model: Any) -> None:
    files = dict(FILES)
    seed = make.make_finished_evaluation(source=make.SOURCE, entry="main.cpp", files=files)
    client.force_login(make.make_user(username="ada"))
    opened = client.get(f"/runs/new/?submission={seed.submission_id}&strategy=autotune")
    assert "files stay as they are: b.h, in/sum.h" in " ".join(opened.content.decode().split())
    form = opened.context["form"]
    sent = {name: form[name].value() for name in form.fields}
    sent = {name: value for name, value in sent.items() if value not in (None, False)}
    sent |= {"device": "cpu", "strategy": "plain", "models": [model.name]}
    assert client.post("/runs/new/", sent | {"beside": "{"}).status_code == 422
    refused = client.post("/runs/new/", sent | {"beside": '{"b.h": 1}'})
    assert set(refused.context["form"].errors) == {"beside"}
    command = client.post("/runs/new/estimate/", sent).content.decode()
    assert "in/sum.h" in command
    assert client.post("/runs/new/", sent).status_code == 302
    problem = Run.objects.get().problem
    assert (problem["seed_entry"], problem["seed_files"]) == ("main.cpp", files)
    like = client.get(f"/runs/new/?like={Run.objects.get().pk}").context["form"]
    assert (like["entry"].value(), like.names()) == ("main.cpp", ["b.h", "in/sum.h"])


def test_a_module_is_no_seed(client: Client) -> None:
    seed = make.make_finished_evaluation(source="def forward(x): ...", language=Language.PYTHON)
    client.force_login(seed.submission.author)
    address = f"/runs/new/?submission={seed.submission_id}"
    assert "def forward" not in client.get(address).content.decode()
    assert address not in client.get(seed.submission.get_absolute_url()).content.decode()
