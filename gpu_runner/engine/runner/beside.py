"""Modules beside a submission's entry: imported from what the supervisor handed over.

Whatever is installed comes first. A file of the same name as an installed module is refused, so
that a kernel doesn't mean one thing here and another on the next host.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import tokenize
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from io import BytesIO
from pathlib import Path, PurePosixPath
from types import CodeType, ModuleType


class Given(importlib.machinery.SourceFileLoader):
    """Runs the text that the supervisor handed over, whatever stands at the path by then."""

    def __init__(self, name: str, path: Path, text: str) -> None:
        super().__init__(name, str(path))
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        """Compile the text; no cached bytecode is looked for."""
        if not _is_itself(self._text):
            reason = "declares an encoding that changes its text; write it in UTF-8"
            raise SyntaxError(reason, (self.path, 1, 0, ""))
        code: CodeType = self.source_to_code(self._text, self.path)
        return code


class Beside(MetaPathFinder):
    """Finds modules of a submission's folder, by `import a` or, in the entry, `from . import a`.

    The entry is a package without a path, so nobody else looks for what it contains.
    """

    def __init__(self, entry: str, folder: Path, files: Mapping[str, str]) -> None:
        """entry: the name under which the entry is imported. folder: where the files lie."""
        self._entry, self._folder = entry, folder
        self._texts = {name: text for name, text in files.items() if name.endswith(".py")}
        paths = map(PurePosixPath, self._texts)
        self._folders = {str(parent) for path in paths for parent in path.parents} - {"."}

    def hidden(self) -> str:
        """The first file whose module is installed here, which it would never replace."""
        for name in self._texts:
            top = name.partition("/")[0].removesuffix(".py")
            if top.isidentifier() and _is_here(top):  # nobody can import any other
                return name
        return ""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See `MetaPathFinder`."""
        place = fullname.removeprefix(f"{self._entry}.").replace(".", "/")
        for name in (f"{place}/__init__.py", f"{place}.py"):
            if name in self._texts:
                file = self._folder / name
                loader = Given(fullname, file, self._texts[name])
                inner: list[str] | None = [] if name.endswith("/__init__.py") else None
                return importlib.util.spec_from_file_location(
                    fullname, file, loader=loader, submodule_search_locations=inner
                )
        if place not in self._folders:
            return None
        return importlib.machinery.ModuleSpec(fullname, None, is_package=True)

    def take_part(self) -> None:
        """Be asked from now on, after all others."""
        sys.meta_path.append(self)


def _is_itself(text: str) -> bool:
    """Whether a text says the same to compilers that read its file by the encoding it declares."""
    content = text.encode()
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(content).readline)
        return content.decode(encoding) == text
    except (SyntaxError, LookupError, ValueError):
        return False


def _is_here(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # it is loaded, and doesn't say from where
        return True
