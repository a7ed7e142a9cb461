"""ShinkaEvolve itself, with a scripted language model: it runs our program for each candidate."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.evaluators.conftest import LocalSite
from tests.evaluators.kernels import SEED, page_sample, reply_with
from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint

pytest.importorskip("shinka.core")

REPLIES = ["wrong", "good speed=4", "good speed=2"]


def test_a_search_stores_scores_and_reasons(
    site: LocalSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shinka.core import EvolutionConfig, ShinkaEvolveRunner
    from shinka.database import DatabaseConfig

    monkeypatch.chdir(tmp_path)
    Path("kernel.cpp").write_text(SEED)
    names: dict[str, Any] = {}
    exec(page_sample("shinka"), names)

    def script(asked: Asked) -> Answer:
        return Answer(reply_with(REPLIES[(asked.number - 1) % len(REPLIES)], asked.number))

    with ScriptedEndpoint(script) as endpoint:
        config = EvolutionConfig(
            language="cpp",
            init_program_path="kernel.cpp",
            results_dir=str(tmp_path / "out"),
            num_generations=4,
            patch_types=["full"],
            patch_type_probs=[1.0],
            llm_models=[f"local/m@{endpoint.base_url}"],
            llm_dynamic_selection=None,
            embedding_model=None,
            meta_rec_interval=None,
            use_text_feedback=True,
        )
        database = DatabaseConfig(db_path="programs.sqlite", num_islands=1)
        runner = ShinkaEvolveRunner(
            config, names["job"], database, max_evaluation_jobs=2, max_proposal_jobs=1
        )
        runner.run()
    [file] = tmp_path.rglob("programs.sqlite")
    rows = sqlite3.connect(file).execute(
        "SELECT correct, combined_score, text_feedback FROM programs"
    )
    found = sorted((bool(right), round(score, 3), words) for right, score, words in rows)
    assert [each[:2] for each in found] == [(False, 0), (True, 1), (True, 2), (True, 4)]
    assert "element 3 of out is wrong" in found[0][2]
