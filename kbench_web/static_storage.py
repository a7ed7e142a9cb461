"""How collected styles and scripts are stored: compressed, under names that hold their hash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

_IMPORTS = (
    r"""(?P<matched>(?P<word>\bfrom |\bimport |\bimport\()"(?P<url>\.[^"]+)")""",
    '%(word)s"%(url)s"',
)
_OWN = ("css/", "js/", "vendor/", "django_htmx/htmx-2.min")


class HashedStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc] # untyped
    """Of our own modules the imports also name the hash, so that browsers may keep every file.

    Those of installed packages are left alone: some comments there import what does not exist.
    Brotli takes ten times as long as gzip, so only what our pages load is compressed by it.
    """

    patterns = (*CompressedManifestStaticFilesStorage.patterns, ("js/*.js", (_IMPORTS,)))
    keep_only_hashed_files = True
    _brotli = True

    def compress_files(self, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Compress files; yields the name of each and of its compressed neighbour."""
        own = {path for path in paths if path.startswith(_OWN)}
        for self._brotli, part in ((True, own), (False, set(paths) - own)):
            yield from super().compress_files(part)

    def create_compressor(self, **kwargs: object) -> Compressor:
        """What compresses a file that was not compressed before."""
        return _FirstTime(use_brotli=self._brotli, **kwargs)


class _FirstTime(Compressor):  # type: ignore[misc] # untyped
    """A name holds its file's hash: what lies beside it under that name is still right."""

    def compress(self, path: str) -> list[str]:
        return [] if Path(f"{path}.gz").exists() else super().compress(path)
