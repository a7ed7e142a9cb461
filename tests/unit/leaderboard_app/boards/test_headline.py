"""What a board says of its leader."""

from __future__ import annotations

from leaderboard_app.boards import headline


def test_a_headline_names_the_fastest_library() -> None:
    said = headline._beside({"cuDNN": 0.5, "FlashAttention": 0.8})
    assert said.startswith(" cuDNN is the fastest library")
    assert "0.5" in said
    assert headline._beside({}) == ""
