"""The form in which a person starts an optimization run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES
from gpu_runner.data.verdict import Direction
from runs_app.core.forms import ServiceForm, SourceField
from runs_app.core.queue.devices import devices
from runs_app.optimiser.evolve.budget import MIN_OUTPUT_TOKENS
from runs_app.optimiser.evolve.config import MOST, RunConfig
from runs_app.optimiser.evolve.strategies import STRATEGIES, StrategyInfo
from runs_app.optimiser.selectors.runs import callable_models
from runs_app.optimiser.start.parameters import (
    NO_MODELS,
    field_name,
    parameter_fields,
    read_parameters,
)
from runs_app.submitting.workbench.forms import Held, held_names
from tasks_app.selectors import published_tasks

VERIFIERS = (
    ("compile", "Compile", "will the compiler accept it?"),
    ("memory", "Memory", "does it stay within its buffers, without races?"),
    ("numerics", "Numerics", "does it compute the same values as the reference?"),
)
VERIFIER_USE = (
    ("off", "Off", "every candidate is measured"),
    ("soft", "Soft", "only the candidates with the best votes in each generation are measured"),
    ("hard", "Threshold", "candidates with too few passing votes are dropped"),
)
PROFILES = (
    ("none", "None", "prompts show times only"),
    ("filtered", "Filtered", "prompts show the metrics for the candidate's bottleneck class"),
    ("full", "Full", "prompts show all metrics"),
)
SEED_KERNELS = (
    (
        "",
        "Default",
        "the naive kernel, if there is one; for autotune, the one with knobs; for translate, none",
    ),
    (
        "best",
        "Best",
        "the correct public kernel with the best score on this device; for a private run, yours "
        "count too",
    ),
    ("none", "None", "the run starts by translating the reference"),
    ("own", "Own", "your own source"),
)
_LABELS = {
    "source": "Seed kernel source",
    "models": "Language models",
    "max_tokens": "Answer limit, tokens",
    "usd": "Money, USD",
    "minutes": "Running time, minutes",
    "verifier_use": "Verifiers",
    "threshold": "Minimum share of passing votes",
    "survivors": "Candidates measured per generation",
    "verifier_model": "Verifier model",
    "profile": "Profile in prompts",
    "concurrent_asks": "Concurrent calls",
    "seed": "Seed number",
    "name": "Run name",
}
"""What the page calls a field, where its name with a capital does not do."""
_MINUTE_S = 60
_SAME = (
    *("task", "direction", "device", "strategy", "max_tokens", "profile", "concurrent_asks"),
    *("seed_kernel", "seed", "private", "enters_best", "ranks_best"),
)
"""Fields that the API has under the same names, with the same values."""
_OF_VERIFIERS = ("threshold", "survivors", "reflect")
_FIELDS_OF_SERVICE = {
    "task_version": "task",
    "files": "beside",
    "budget": "evaluations",
    "budget.usd": "usd",
    "budget.tokens": "tokens",
    "budget.evaluations": "evaluations",
    "budget.wall_time_s": "minutes",
    "verifiers.names": "verifiers",
    "verifiers.threshold": "threshold",
    "verifiers.survivors": "survivors",
    "verifiers.model": "verifier_model",
}


def _usual_usd() -> float:
    return min(2, settings.MAX_RUN_USD)


def _at_least(least: float) -> list[MinValueValidator]:
    return [MinValueValidator(least, f"Must be {least:g} or more.")]


def _seconds(minutes: float | None) -> int | None:
    return None if minutes is None else round(minutes * _MINUTE_S)


_MINUTES = [
    *_at_least(0),
    MaxValueValidator(MOST["wall_time_s"] / _MINUTE_S, "Must be at most %(limit_value)d."),
]


class RunForm(ServiceForm):
    """Fields of `optimiser.services.start.start_run`, but for a strategy's parameters."""

    FIELDS: ClassVar[Mapping[str, str]] = _FIELDS_OF_SERVICE
    WORDS: ClassVar[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
        "verifiers": VERIFIERS,
        "verifier_use": VERIFIER_USE,
        "profile": PROFILES,
        "seed_kernel": SEED_KERNELS,
    }
    """What the page says of each choice of a field: its value, its label, and a sentence."""

    task = forms.ChoiceField(error_messages={"required": "Choose a task."})
    direction = forms.ChoiceField(
        choices=[(d.value, d.value.capitalize()) for d in Direction],
        initial=Direction.FORWARD.value,
    )
    device = forms.ChoiceField(error_messages={"required": "Choose a device."})
    strategy = forms.ChoiceField(error_messages={"required": "Choose a strategy."})
    seed_kernel = forms.ChoiceField(
        required=False, choices=[(v, w) for v, w, _ in SEED_KERNELS], initial=""
    )
    source = SourceField()
    entry = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)
    beside = Held(required=False, widget=forms.HiddenInput)
    models = forms.MultipleChoiceField(required=False)
    temperatures = forms.CharField(required=False, max_length=100, initial="0.5, 0.75, 1.0")
    max_tokens = forms.IntegerField(initial=8192, validators=_at_least(MIN_OUTPUT_TOKENS))
    usd = forms.FloatField(required=False, initial=_usual_usd, validators=_at_least(0))
    tokens = forms.IntegerField(required=False, initial=2_000_000, validators=_at_least(0))
    evaluations = forms.IntegerField(required=False, initial=60, validators=_at_least(0))
    minutes = forms.FloatField(required=False, initial=60, validators=_MINUTES)
    verifier_use = forms.ChoiceField(choices=[(v, w) for v, w, _ in VERIFIER_USE], initial="off")
    verifiers = forms.MultipleChoiceField(
        required=False,
        choices=[(v, w) for v, w, _ in VERIFIERS],
        initial=[v for v, _, _ in VERIFIERS],
    )
    threshold = forms.FloatField(initial=0.5, validators=_at_least(0))
    survivors = forms.IntegerField(initial=4, validators=_at_least(1))
    reflect = forms.BooleanField(required=False, initial=True)
    verifier_model = forms.ChoiceField(required=False)
    profile = forms.ChoiceField(choices=[(v, w) for v, w, _ in PROFILES], initial="filtered")
    concurrent_asks = forms.IntegerField(initial=4, validators=_at_least(1))
    seed = forms.IntegerField(required=False, validators=_at_least(0))
    agent = forms.CharField(required=False, max_length=100)
    name = forms.CharField(required=False, max_length=150)
    private = forms.BooleanField(required=False)
    enters_best = forms.BooleanField(required=False, initial=True)
    ranks_best = forms.BooleanField(required=False, initial=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tasks = published_tasks().values_list("slug", "title")
        self.offer("task", [("", "Choose a task"), *((s, f"{s}: {title}") for s, title in tasks)])
        self.offer("device", [(d.slug, d.name) for d in devices()])
        self.offer("strategy", [(info.name, info.title) for info in STRATEGIES.values()])
        models = callable_models()
        names = [(model.name, model.name) for model in models]
        if not any(model.is_priced for model in models):
            self.fields["usd"].initial = None  # such a cap couldn't be checked
        self.has_models = bool(names)
        self.offer("models", names)
        self.offer("verifier_model", [("", "The language model that wrote the candidate"), *names])
        for name, label in _LABELS.items():
            self.fields[name].label = label
        self.fields.update(parameter_fields())

    def clean_temperatures(self) -> list[float]:
        """Numbers between 0 and 2, with commas between them."""
        text = self.cleaned_data["temperatures"]
        try:
            values = [float(part) for part in text.replace(";", ",").split(",") if part.strip()]
        except ValueError:
            raise forms.ValidationError(
                "Enter numbers separated by commas, such as 0.5, 1."
            ) from None
        if not all(0 <= value <= 2 for value in values):
            raise forms.ValidationError("Each number must be from 0 to 2.")
        return values or list(RunConfig(strategy="", seed=0).temperatures)

    def clean_source(self) -> str:
        """At most the size that a submission may have."""
        source: str = self.cleaned_data["source"]
        if len(source.encode("utf-8", "replace")) > SOURCE_LIMIT_BYTES:
            raise forms.ValidationError(f"Must be at most {SOURCE_LIMIT_BYTES // 2**20} MiB.")
        return source

    def clean(self) -> dict[str, object]:
        """Ask for what the chosen strategy needs and for what other fields promise."""
        values = super().clean() or {}
        info = STRATEGIES.get(values.get("strategy", ""))
        if info and info.needs_models and not values.get("models") and "models" not in self.errors:
            which = "choose one" if self.has_models else NO_MODELS
            self.add_error("models", f"{info.title} needs a language model: {which}.")
        if info and info.needs_seed and values.get("seed_kernel") == "none":
            self.add_error("seed_kernel", f"{info.title} needs a seed kernel.")
        own = values.get("seed_kernel") == "own"
        if own and not values.get("source", "").strip() and "source" not in self.errors:
            self.add_error("source", "Paste the seed kernel, or choose another seed.")
        if values.get("verifier_use") != "off" and not values.get("verifiers"):
            self.add_error("verifiers", "Choose at least one verifier, or turn verifiers off.")
        if values.get("threshold", 0) > 1:
            self.add_error("threshold", "Enter a share of the votes, from 0 to 1.")
        if info:
            self._check_parameters(info, read_parameters(info, values))
        return values

    def request(self) -> dict[str, object]:
        """The run that the form asks for, in the words of the API."""
        values = self.filled()
        info = STRATEGIES.get(values["strategy"])
        asks = bool(info and info.needs_models)
        own = values["seed_kernel"] == "own"
        wanted = {name: values[name] for name in (*_SAME, "temperatures")} | {
            "parameters": read_parameters(info, values) if info else {},
            "models": values["models"] if asks else [],
            "budget": self.budget(),
            "verifiers": self._verifiers() if asks else None,
            "source": values["source"] if own else "",
            "entry": (own and values["entry"]) or None,
            "files": (own and values["beside"]) or None,
            "agent": values["agent"].strip(),
            "name": values["name"].strip(),
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def names(self) -> list[str]:
        """Names of the files beside the source."""
        return held_names(self["beside"])

    def budget(self) -> dict[str, object]:
        """Caps; an empty field is no cap."""
        values = self.filled()
        caps = {name: values[name] for name in ("usd", "tokens", "evaluations")}
        return caps | {"wall_time_s": _seconds(values["minutes"])}

    def field_of(self, name: str) -> str:
        """As of every form; a strategy's parameters have fields of their own."""
        if name.startswith("parameters."):
            return field_name(self.data.get("strategy", ""), _parameter(name))
        return super().field_of(name)

    def _check_parameters(self, info: StrategyInfo, given: dict[str, object]) -> None:
        """Refuse all parameters that the strategy would refuse one after the other."""
        while True:
            try:
                codec.decode(info.parameters, given, "parameters")
            except DataError as error:
                self.add_refusal(error.field, error.reason)
                if given.pop(_parameter(error.field), None) is None:
                    return
            else:
                return

    def _verifiers(self) -> dict[str, object]:
        values = self.filled()
        use = values["verifier_use"]
        return {
            "names": values["verifiers"] if use != "off" else [],
            "soft": use != "hard",
            "model": values["verifier_model"],
            **{name: values[name] for name in _OF_VERIFIERS},
        }


def _parameter(field: str) -> str:
    """Name of the parameter in `parameters.name`, `parameters.name[0]`."""
    return field.removeprefix("parameters.").split(".")[0].split("[")[0]


def initial_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What the form shows of a run in the words of the API; the inverse of `RunForm.request`."""
    verifiers, budget = wanted["verifiers"], wanted["budget"]
    use = "off" if not verifiers["names"] else "soft" if verifiers["soft"] else "hard"
    seconds = budget.get("wall_time_s")
    parameters = {
        field_name(wanted["strategy"], name): value for name, value in wanted["parameters"].items()
    }
    return {
        **{name: wanted.get(name) for name in (*_SAME, "models", "name", "source", "entry")},
        **{name: budget.get(name) for name in ("usd", "tokens", "evaluations")},
        **parameters,
        "beside": wanted["files"],
        "minutes": None if seconds is None else f"{seconds / 60:g}",
        "temperatures": ", ".join(f"{value:g}" for value in wanted["temperatures"]),
        "verifier_use": use,
        "verifiers": verifiers["names"],
        "verifier_model": verifiers["model"],
        **{name: verifiers[name] for name in _OF_VERIFIERS},
    }


class BudgetForm(ServiceForm):
    """New caps of a run; an empty field is no cap, and one that was not sent stays."""

    FIELDS: ClassVar[Mapping[str, str]] = _FIELDS_OF_SERVICE

    usd = forms.FloatField(required=False, validators=_at_least(0))
    tokens = forms.IntegerField(required=False, validators=_at_least(0))
    evaluations = forms.IntegerField(required=False, validators=_at_least(0))
    minutes = forms.FloatField(required=False, validators=_MINUTES)

    def caps(self) -> dict[str, object]:
        """The caps that were sent, in the words of the API; call it on a valid form."""
        caps = {name: value for name, value in self.cleaned_data.items() if name in self.data}
        if "minutes" in caps:
            caps["wall_time_s"] = _seconds(caps.pop("minutes"))
        return caps
