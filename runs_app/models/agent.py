"""Who writes kernels: people, agents, and the language models that agents use."""

from __future__ import annotations

from django.conf import settings
from django.db import models
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
    description = models.TextField(blank=True)
    created_at = models.DateTimeField()

    class Meta:
        """A person has an account, and only a person has."""

        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(kind="person", user__isnull=False)
                | (~models.Q(kind="person") & models.Q(user__isnull=True)),
                name="agent_user_iff_person",
            ),
        )

    def __str__(self) -> str:
        """Name on the leaderboard."""
        return self.name

    def get_absolute_url(self) -> str:
        """Address of the agent's page."""
        return reverse("agent", args=[self.pk])


class LanguageModel(models.Model):
    """A language model by the name under which its maker sells it."""

    name = models.CharField(max_length=150, unique=True)
    created_at = models.DateTimeField()

    class Meta:
        """Language models are listed by name."""

        ordering = ("name",)

    def __str__(self) -> str:
        """Name on the leaderboard."""
        return self.name

    def get_absolute_url(self) -> str:
        """Address of the language model's page."""
        return reverse("language-model", args=[self.pk])
