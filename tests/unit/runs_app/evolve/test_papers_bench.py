"""The papers' comparison starts by one command, given an endpoint; here a scripted one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.formats import find_task
from tests.bench import papers, papers_by_spool
from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint


def kernel(name: str) -> str:
    return find_task("vector_add").files[f"kernels/{name}.cpp"]


def script(asked: Asked) -> Answer:
    source = f"// answer {asked.number}\n{kernel('good')}"
    return Answer(f"NAME: variant\nTHOUGHT: none\nCODE:\n```cpp\n{source}\n```")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "--base-url: name the endpoint"),
        (["--base-url", "http://localhost:1"], "--api-name: name the language model"),
        (["--task", "rop"], "--task: no task or path 'rop'"),
        (["--published", "nowhere"], "--published: nowhere is no folder"),
        ([], "--yes: nothing was spent"),
    ],
)
def test_wrong_use_names_the_option(
    words: list[str],
    error: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    endpoint = ["--base-url", "http://localhost:1", "--api-name", "m"]
    is_whole = not error.startswith(("--base-url", "--api-name"))
    monkeypatch.setattr("sys.argv", ["papers", *(endpoint if is_whole else []), *words])
    with pytest.raises(SystemExit):
        papers.main()
    assert error in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "--base-url: name the endpoint"),
        (["--base-url", "http://localhost:1", "--api-name", "m"], "--yes: nothing was spent"),
        (["--base-url", "http://localhost:1"], "--api-name: name the language model"),
    ],
)
def test_wrong_use_of_the_one_by_spool(
    words: list[str],
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    needed = ["--data", str(tmp_path), "--spool", str(tmp_path), "--device", "d", "--name", "D"]
    monkeypatch.setattr("sys.argv", ["papers_by_spool", *needed, "--work", "true", *words])
    with pytest.raises(SystemExit):
        papers_by_spool.main()
    assert error in capsys.readouterr().err


@pytest.mark.slow
def test_an_endpoint_that_fails_loses_no_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedEndpoint([Answer(status=400)]) as endpoint:
        words = ["--base-url", endpoint.base_url, "--api-name", "m", "--device", "cpu", "--yes"]
        words += ["--task", "vector_add", "--strategy", "fsr", "--evaluations", "2"]
        monkeypatch.setattr("sys.argv", ["papers", *words])
        papers.main()
    assert "| vector_add | fsr | 1 |" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timed
def test_a_run_stands_beside_the_published_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vector_add.cpp").write_text(kernel("naive"))
    with ScriptedEndpoint(script) as endpoint:
        words = ["--base-url", endpoint.base_url, "--api-name", "m", "--device", "cpu", "--yes"]
        words += ["--task", "vector_add", "--strategy", "fsr", "--evaluations", "2"]
        words += ["--published", str(tmp_path), "--out", str(tmp_path / "best")]
        monkeypatch.setattr("sys.argv", ["papers", *words])
        papers.main()
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "| vector_add |" in line]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:3] == ["vector_add", "fsr", "1"]
    assert float(cells[6]) > 0, row
    assert list((tmp_path / "best").iterdir())
    prompt = endpoint.asked[0].prompt
    for words_of_the_brief in ("; eager ", "L2 cache: ", "An output element passes if", "by g++"):
        assert words_of_the_brief in prompt
    hidden = [w.name for w in find_task("vector_add").workloads if w.hidden]
    assert hidden
    assert not [name for name in hidden if f"{name}:" in prompt]
