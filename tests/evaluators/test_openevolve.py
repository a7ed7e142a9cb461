"""OpenEvolve itself, with a scripted language model: what the site says reaches its database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluators.conftest import LocalSite
from tests.evaluators.kernels import SEED, page_sample, reply_with
from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint

openevolve = pytest.importorskip("openevolve")

REPLIES = ["wrong", "good speed=4", "fault", "good speed=2"]


def test_a_search_finds_the_fastest_kernel(site: LocalSite, tmp_path: Path) -> None:
    from openevolve.config import Config, LLMModelConfig

    (tmp_path / "evaluator.py").write_text(page_sample("openevolve"))
    (tmp_path / "kernel.cpp").write_text(SEED)

    def script(asked: Asked) -> Answer:
        return Answer(reply_with(REPLIES[(asked.number - 1) % len(REPLIES)], asked.number))

    with ScriptedEndpoint(script) as endpoint:
        config = Config(diff_based_evolution=False, max_iterations=4, log_level="ERROR")
        model = LLMModelConfig(name="m", api_base=endpoint.base_url, api_key="none", timeout=30)
        config.llm.models = config.llm.evaluator_models = [model]
        config.llm.retries, config.llm.retry_delay = 0, 0
        config.evaluator.max_retries = 0
        config.evaluator.parallel_evaluations = 2
        found = openevolve.run_evolution(
            tmp_path / "kernel.cpp",
            tmp_path / "evaluator.py",
            config=config,
            output_dir=str(tmp_path / "out"),
            cleanup=False,
        )
        prompts = "\n".join(asked.prompt for asked in endpoint.asked)
    assert found.best_score == pytest.approx(4)
    assert "speed=4" in found.best_code
    assert found.metrics["correct"] == 1
    assert len(endpoint.asked) == 4
    assert "combined_score" in prompts
