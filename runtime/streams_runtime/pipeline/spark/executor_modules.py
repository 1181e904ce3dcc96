"""The modules of the user's functions, for executors that have no others than what is installed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from pyspark import SparkContext, SparkFiles

_STANDARD = Path(os.__file__).resolve().parent  # Python's own modules


def send_modules(context: SparkContext, references: Collection[str]) -> None:
    """Give the executors the modules of functions (`package.module:name`) that are loaded, and what lies beside them.

    Installed packages are not sent: the executors have them.
    """
    folders = {
        Path(file).resolve().parents[reference.partition(":")[0].count(".") + (Path(file).name == "__init__.py")]
        for reference in references
        if (file := getattr(sys.modules[reference.partition(":")[0]], "__file__", None)) is not None
    }
    for folder in sorted(folders):
        if not folder.is_relative_to(sys.prefix) and not folder.is_relative_to(_STANDARD):
            # Executors fetch it from where it is whenever they start; Spark removes its folder at its end.
            place = Path(tempfile.mkdtemp(prefix="modules-", dir=SparkFiles.getRootDirectory()))
            context.addPyFile(str(_archive(folder, place)))


def _archive(folder: Path, place: Path) -> Path:
    """A ZIP archive of the modules and packages of a folder that this process has loaded; no others."""
    content = place / "content"
    content.mkdir()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if "." in name or file is None or not file.endswith(".py"):
            continue
        path = Path(file).resolve()
        if path.name == "__init__.py" and path.parent.parent == folder:
            shutil.copytree(path.parent, content / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.parent == folder:
            shutil.copy(path, content / path.name)
    return Path(shutil.make_archive(str(place / place.name), "zip", content))
