"""The real language model that a bench asks: its options, and what its answers cost."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from runs_app.evolve.budget import cost_usd
from runs_app.evolve.commands import Ask
from runs_app.evolve.config import ModelSpec
from runs_app.evolve.outcomes import Answer, CallFailure
from runs_app.llm.endpoint import Endpoint
from tests.bench.campaign import Model
from tests.bench.optimise import asking


def add_endpoint(parser: argparse.ArgumentParser) -> None:
    """Options that name an endpoint."""
    parser.add_argument("--base-url", default="", help="ask a real language model there")
    parser.add_argument("--api-name", default="", help="its name at the endpoint")
    parser.add_argument("--key-variable", default="", help="environment variable of its key")


def check_endpoint(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse an endpoint that cannot be asked, naming the option."""
    if options.base_url and not options.api_name:
        parser.error("--api-name: name the language model at the endpoint")
    if options.key_variable and options.key_variable not in os.environ:
        parser.error(f"--key-variable: {options.key_variable} is not set")


def language_model(options: argparse.Namespace) -> tuple[ModelSpec, Model]:
    """The language model as a run names it, and as it is asked."""
    endpoint = Endpoint(
        name=options.api_name,
        api_name=options.api_name,
        base_url=options.base_url,
        key_variable=options.key_variable,
    )
    prices = {"price_in_usd": options.price_in, "price_out_usd": options.price_out}
    spec = ModelSpec(name=options.api_name, **prices)
    return spec, _priced(asking(endpoint), spec)


def _priced(model: Model, spec: ModelSpec) -> Model:
    """The same with what its answers cost."""

    def ask(number: int, command: Ask) -> Answer | CallFailure:
        answer = model(number, command)
        return replace(answer, cost_usd=cost_usd(spec, answer.tokens_in, answer.tokens_out))

    return ask
