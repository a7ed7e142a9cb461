"""Who writes kernels: people, agents, and the language models that agents use."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse


class Agent(models.Model):
    """A strategy with its prompts, a person, or the kernels that come with the tasks."""

    class Kind(models.TextChoices):
        """What stands behind the name."""

        PERSON = "person", "Person"
        AGENT = "agent", "Agent"
        SHIPPED = "shipped", "Shipped with the tasks"

    name = models.CharField(max_length=150, unique=True)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.AGENT)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="agent",
        help_text="The person, if the kind is person.",
    )
    imported_from = models.CharField(
        max_length=40,
        blank=True,
        help_text="The site that the agent was imported from; empty for this site's own agents.",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="agents",
        help_text=(
            "The only user who can submit kernels under this name: the first one who used it."
        ),
    )
    listed = models.BooleanField(default=False, help_text="Whether it is public.")
    description = models.TextField(blank=True)
    created_at = models.DateTimeField()

    class Meta:
        """A person has an account, unless it is another site's, and only a person has."""

        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(kind="person", user__isnull=False, imported_from="")
                | models.Q(kind="person", user__isnull=True) & ~models.Q(imported_from="")
                | (~models.Q(kind="person") & models.Q(user__isnull=True)),
                name="agent_user_iff_person",
            ),
            models.CheckConstraint(
                condition=models.Q(owner__isnull=True) | models.Q(kind="agent"),
                name="agent_owner_only_of_agents",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("agent", args=[self.pk])


class LanguageModel(models.Model):
    """A language model by the name under which its maker sells it."""

    name = models.CharField(max_length=150, unique=True)
    listed = models.BooleanField(default=False, help_text="Whether it is public.")
    created_at = models.DateTimeField()

    # How to call it; without a base URL it can only be named as an author.
    base_url = models.CharField(  # no URLField, which refuses names such as http://vllm:8000
        max_length=500, blank=True, help_text="OpenAI-compatible, such as https://api.openai.com/v1"
    )
    api_name = models.CharField(
        max_length=150,
        blank=True,
        help_text="Its name at the endpoint. Leave empty if it is the same as the name above.",
    )
    key_variable = models.CharField(
        max_length=100,
        blank=True,
        help_text="Environment variable on the web host that holds the key; never the key itself.",
    )
    price_in_usd = models.FloatField(
        null=True,
        blank=True,
        help_text="USD per million input tokens: 0 if they are free, empty if you don't know.",
    )
    price_out_usd = models.FloatField(
        null=True,
        blank=True,
        help_text="USD per million output tokens: 0 if they are free, empty if you don't know.",
    )
    max_output_tokens = models.PositiveIntegerField(default=8192)
    token_parameter = models.CharField(
        max_length=30,
        default="max_tokens",
        choices=[(v, v) for v in ("max_tokens", "max_completion_tokens")],
    )
    supports_temperature = models.BooleanField(default=True)
    timeout_s = models.PositiveIntegerField(
        default=120, help_text="Seconds of silence after which a call is abandoned."
    )
    extra = models.JSONField(
        default=dict, blank=True, help_text="Additional fields to send with each request."
    )
    attempts = models.PositiveSmallIntegerField(
        default=0,
        blank=True,
        help_text="How many kernels a command may try before it answers; each one counts toward "
        "the run's budget.",
    )

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=Q(price_in_usd__isnull=True, price_out_usd__isnull=True)
                | Q(price_in_usd__isnull=False, price_out_usd__isnull=False),
                name="language_model_prices",
                violation_error_message="Enter both prices, or leave both empty.",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("language-model", args=[self.pk])

    @property
    def is_priced(self) -> bool:
        """Whether anybody has entered what its tokens cost, if only that they are free."""
        return self.price_in_usd is not None and self.price_out_usd is not None

    @property
    def is_callable(self) -> bool:
        """Whether runs can use it."""
        return bool(self.base_url)
