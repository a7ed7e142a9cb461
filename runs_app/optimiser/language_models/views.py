"""The form of a language model, for admins."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from runs_app.core.forms import refusals
from runs_app.models import LanguageModel
from runs_app.optimiser.language_models.forms import LanguageModelForm
from runs_app.optimiser.language_models.services import remove_language_model, save_language_model
from runs_app.optimiser.selectors.language_models import is_named
from tasks_app.people import AuthenticatedRequest, admins_only


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def language_model_form(
    request: AuthenticatedRequest, language_model_id: int | None = None
) -> HttpResponse:
    """Add a language model, or change how one is called."""
    known = language_model_id is not None
    model = get_object_or_404(LanguageModel, pk=language_model_id) if known else LanguageModel()
    name = model.name
    form = LanguageModelForm(request.POST or None, instance=model)
    if request.method == "POST" and form.is_valid():
        save_language_model(
            model=form.save(commit=False),
            fields=LanguageModelForm.Meta.fields,
            user=request.user,
            now=timezone.now(),
        )
        messages.success(request, f"{model.name} is saved.")
        return redirect(model)
    page = {"form": form, "model": model, "name": name, "can_go": known and not is_named(model)}
    template = "runs_app/optimisation/language_models/form.html"
    return render(request, template, page, status=422 if form.is_bound else 200)


@require_POST
@admins_only
def language_model_remove(request: AuthenticatedRequest, language_model_id: int) -> HttpResponse:
    """Take one away that nothing names."""
    model = get_object_or_404(LanguageModel, pk=language_model_id)
    name = model.name
    with refusals(request, "Not removed"):
        remove_language_model(model=model, user=request.user, now=timezone.now())
        messages.success(request, f"{name} is removed.")
        return redirect("language-models")
    return redirect(model)
