"""The index of docs/decisions, drawn from the pages: `python -m tests.architecture.decisions`."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
INDEX = FOLDER / "README.md"
HEAD = "| number | date | decision |\n|---|---|---|\n"


def pages() -> list[Path]:
    """The decisions, in order of their numbers."""
    return sorted(FOLDER.glob("[0-9]*.md"))


def drawn() -> str:
    """The rows of the index: number, date and title of each page."""
    rows = []
    for page in pages():
        title, _, date = page.read_text().splitlines()[:3]
        number = int(page.name[:4])
        rows.append(f"| [{number}]({page.name}) | {date} | {title.removeprefix('# ')} |\n")
    return "".join(rows)


def stored() -> str:
    """The rows that the index has now."""
    return INDEX.read_text().split(HEAD)[1]


def main() -> None:
    """Draw the index again."""
    INDEX.write_text(INDEX.read_text().split(HEAD)[0] + HEAD + drawn())


if __name__ == "__main__":
    main()
