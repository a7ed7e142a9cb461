"""The admin's form of a language model: what could not be called is refused with the field."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.conf import settings

from runs_app.models import LanguageModel
from runs_app.optimiser.llm.endpoint import (
    COMMAND,
    COMMANDS_VARIABLE,
    RESERVED,
    check_url,
    commands,
)
from runs_app.optimiser.selectors.language_models import is_used

MOST_ATTEMPTS = 50
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_PATH = "/chat/completions"
_KEY_NAME = re.compile(r"(?!KBENCH_)[A-Z0-9_]+_API_KEY")


class LanguageModelForm(forms.ModelForm):  # type: ignore[type-arg]
    """Every field of how to call a language model."""

    class Meta:
        model = LanguageModel
        fields = (
            "name",
            "base_url",
            "api_name",
            "key_variable",
            "price_in_usd",
            "price_out_usd",
            "max_output_tokens",
            "token_parameter",
            "supports_temperature",
            "timeout_s",
            "extra",
            "attempts",
        )
        labels = {
            "base_url": "Base URL",
            "api_name": "API name",
            "price_in_usd": "Input price, in USD",
            "price_out_usd": "Output price, in USD",
            "max_output_tokens": "Answer limit, in tokens",
            "supports_temperature": "Supports temperature",
            "timeout_s": "Timeout, in seconds",
            "extra": "Extra fields, as JSON",
        }
        widgets = {"extra": forms.Textarea(attrs={"rows": 3})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("price_in_usd", "price_out_usd"):
            self.fields[name].validators.append(_check_price)
        for name in ("max_output_tokens", "timeout_s"):
            self.fields[name].validators.append(_check_positive)

    def clean_name(self) -> str:
        """Free until it was used: a run knows its language models by their names."""
        name: str = self.cleaned_data["name"]
        if self.instance.pk and name != self.instance.name and is_used(self.instance):
            raise forms.ValidationError(
                f"runs or calls refer to it as {self.instance.name}, so its name can't change; if "
                "the endpoint uses a different name, enter it as the API name"
            )
        return name

    def clean_base_url(self) -> str:
        """An http(s) address without credentials and query, a command of the host, or nothing."""
        base_url: str = self.cleaned_data["base_url"].strip()
        if base_url.rstrip("/").endswith(_PATH):  # each call appends it
            base_url = base_url.rstrip("/").removesuffix(_PATH)
        if base_url.startswith(COMMAND):
            _check_command(base_url.removeprefix(COMMAND))
        if base_url:
            try:
                check_url(base_url)
            except ValueError as error:
                raise forms.ValidationError(str(error).removeprefix("base_url: ")) from None
        return base_url

    def clean_key_variable(self) -> str:
        """The name of a key for endpoints: this form is no way to send any other secret to one."""
        name: str = self.cleaned_data["key_variable"].strip()
        if name and not _VARIABLE.fullmatch(name):
            raise forms.ValidationError(
                "enter the name of an environment variable in capitals, such as OPENAI_API_KEY; "
                "never the key itself"
            )
        if name and not _KEY_NAME.fullmatch(name) and name not in settings.KEY_VARIABLES:
            raise forms.ValidationError(
                "enter a variable whose name ends in _API_KEY and doesn't start with KBENCH_, or "
                "ask the site's operator to add the name to KBENCH_KEY_VARIABLES"
            )
        return name

    def clean_timeout_s(self) -> int:
        """1 to 86400 seconds."""
        seconds: int = self.cleaned_data["timeout_s"]
        if seconds > 86_400:
            raise forms.ValidationError("enter at most 86400 seconds (a day)")
        return seconds

    def clean_attempts(self) -> int:
        """0, or some for a command: an endpoint answers at once."""
        attempts: int = self.cleaned_data["attempts"] or 0
        base_url = self.cleaned_data.get("base_url", "")
        if attempts > MOST_ATTEMPTS:
            raise forms.ValidationError(f"enter at most {MOST_ATTEMPTS}")
        if attempts and not base_url.startswith(COMMAND):
            raise forms.ValidationError("only commands can try kernels; enter 0")
        return attempts

    def clean_extra(self) -> dict[str, object]:
        """An object that sets nothing which a call sets itself."""
        extra = self.cleaned_data["extra"]
        if extra is None:
            return {}
        if not isinstance(extra, dict):
            raise forms.ValidationError('enter a JSON object, such as {"reasoning_effort": "low"}')
        taken = sorted(RESERVED & set(extra))
        if taken:
            raise forms.ValidationError(f"each call sets {', '.join(taken)} itself; remove it")
        return extra


def _check_command(name: str) -> None:
    """Only what the host's operator has named can be chosen: a form runs no program."""
    try:
        known = commands()
    except ValueError as error:
        raise forms.ValidationError(str(error)) from None
    if name not in known:
        have = ", ".join(sorted(known)) or "none"
        raise forms.ValidationError(
            f"{COMMANDS_VARIABLE} on this host doesn't define {name!r}; it defines: {have}"
        )


def _check_price(value: float) -> None:
    if not 0 <= value < float("inf"):
        raise forms.ValidationError("enter 0 or more, in USD per million tokens")


def _check_positive(value: int) -> None:
    if value < 1:
        raise forms.ValidationError("enter 1 or more")
