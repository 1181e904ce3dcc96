"""Python that a resource names, such as "shop.stats:Summary": found and loaded, or a mistake that says what is there.

A module is looked for as Python does (installed packages, PYTHONPATH), and first in the folder of the resource's file
where there is one.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from streams_runtime.errors import ConfigException

_NAME = r"[^\W\d]\w*"
_REFERENCE = re.compile(rf"({_NAME}(?:\.{_NAME})*):({_NAME}(?:\.{_NAME})*)")


def load(reference: str, base: Path | None = None) -> object:
    """What `reference`, "package.module:name", names; the module is imported, which runs its code.

    `base` is a folder that stays on the path of imports, in front: the one of the resource's file.

    Raises:
        ConfigException: correct the name, which the message shows beside the nearest one, or the module.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise ConfigException(f"{reference!r} names nothing in Python; write package.module:name")
    if base is not None:
        search_in(base)
    found: object = _module(match[1])
    if base is not None:
        _check_place(match[1].partition(".")[0], base)
    for name in match[2].split("."):
        if not hasattr(found, name):
            known = [each for each in dir(found) if not each.startswith("_")]
            raise ConfigException(f"{reference!r}: {match[1]} has no {name!r}; {_suggestion(name, known)}")
        found = getattr(found, name)
    return found


def search_in(base: Path) -> None:
    """Have modules looked for in a folder from now on, before all others."""
    if str(base.resolve()) not in sys.path:
        sys.path.insert(0, str(base.resolve()))


def where_in(error: BaseException) -> str:
    """What the user's code raised and the line that raised it, without a stack trace."""
    trace = error.__traceback__
    place = ""
    while trace is not None:
        place = f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"


def _module(name: str) -> ModuleType:
    importlib.invalidate_caches()  # the file may be newer than this process
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(f"{missing}."):
            raise ConfigException(f"the module {name} needs {missing!r}, which is not installed; install it") from error
        near = _nearest(missing)
        where = "modules are looked for among installed packages, in PYTHONPATH, and beside the file that names them"
        raise ConfigException(f"there is no module {missing!r}; {near}{where}") from error
    except (Exception, SystemExit) as error:
        raise ConfigException(f"the module {name} can't be imported: {where_in(error)}; correct it") from error


def _check_place(name: str, base: Path) -> None:
    """Refuse a module that was loaded from elsewhere before, where `base` has one of its name."""
    here = PathFinder.find_spec(name, [str(base.resolve())])
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if here is not None and here.origin is not None and loaded is not None and here.origin != loaded.origin:
        raise ConfigException(
            f"the module {name!r} of {base} can't be loaded beside {loaded.origin}, which has its name and is loaded"
            " already; give one of them another name, or use a process for each"
        )


def _nearest(missing: str) -> str:
    """The nearest module beside it; of a package all, if none is near."""
    package, _, name = missing.rpartition(".")
    paths = getattr(sys.modules.get(package), "__path__", []) if package else None
    near = _suggestion(name, [each.name for each in pkgutil.iter_modules(paths) if not each.name.startswith("_")])
    return f"{near} " if package or near.startswith("did you mean") else ""


def _suggestion(name: str, known: list[str]) -> str:
    # The models take a second to import, which Spark's Python workers would all pay for.
    from streams_runtime.api.reading.mistakes import suggestion

    return suggestion(name, known)
