"""What systems and people leave beside a task's texts, and no task has."""

from __future__ import annotations

from pathlib import PurePosixPath

_FOLDERS = frozenset(
    {"__pycache__", "__macosx", "$recycle.bin", "system volume information", "@eadir"}
)
_NAMES = frozenset({"thumbs.db", "ehthumbs.db", "ehthumbs_vista.db", "desktop.ini", "icon\r"})
_PICTURES = ".bmp .gif .heic .ico .jpeg .jpg .pdf .png .tif .tiff .webp .avi .mkv .mov .mp4 .webm"
_OFFICE = ".doc .docx .lnk .ods .odt .ppt .pptx .xls .xlsx"
_BUILT = ".a .cubin .dll .dylib .exe .fatbin .lib .o .obj .out .pyc .pyo .so"
_PROFILES = ".ncu-rep .nsys-rep .qdrep .sqlite"
_DATA = ".arrow .ckpt .feather .gguf .h5 .hdf5 .npy .npz .onnx .parquet .pickle .pkl .pt .pth"
_SUFFIXES = frozenset(f"{_PICTURES} {_OFFICE} {_BUILT} {_PROFILES} {_DATA} .safetensors".split())
"""Of pictures, films, links, office documents, profiles, what compilers make, data: no text."""
_MARK = ":zone.identifier"
"""Ends the name of the file that Windows keeps beside one from elsewhere, where others see it."""


def is_clutter(path: str) -> bool:
    """Whether a path with slashes leads to such a file: hidden, a system's, a picture, a cache."""
    *folders, name = path.casefold().split("/")
    hidden = any(part.startswith((".", "~$")) for part in (*folders, name)) or name.endswith(_MARK)
    kept_apart = not _FOLDERS.isdisjoint((*folders, name))
    return hidden or kept_apart or name in _NAMES or PurePosixPath(name).suffix in _SUFFIXES
