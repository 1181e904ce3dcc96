"""Libraries without others that they load only because these are installed; for the beginning of a process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_PANDAS = "pandas"


class _Absent(MetaPathFinder):
    """Finds nothing where these modules are looked for, whoever else would."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, name: str, *_: object) -> None:
        if name in self._names:
            raise ModuleNotFoundError(f"{name} is not loaded here", name=name)


@contextmanager
def absent(*names: str) -> Iterator[None]:
    """As if these modules were not installed; one that is loaded already stays as it is. For a process' beginning, in
    which no other thread imports anything.
    """
    finder = _Absent(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _UntilPandas(MetaPathFinder):
    """Lets pyarrow know when something else imports pandas, as a user's function may: then it has to know its types."""

    def __init__(self) -> None:
        self._looks = False

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != _PANDAS or self._looks:
            return None
        self._looks = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looks = False
        if spec is not None and spec.loader is not None:
            self._tell_after(spec.loader)
        return spec

    def _tell_after(self, loader: Any) -> None:
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            import pyarrow as pa

            # What needs pandas makes pyarrow ask for it again; one that is too old for pyarrow it goes without.
            with suppress(ImportError):
                pa.array([0]).to_pandas()
            sys.meta_path.remove(self)

        loader.exec_module = exec_module


def load_pyarrow_without_pandas() -> None:
    """Load pyarrow so that it does without pandas until something else imports it; nothing where either is loaded.

    It otherwise loads pandas at the first array that is made of a list, to see that it is given none of it: a third of
    a second of a processor, and 57 MiB.
    """
    if _PANDAS in sys.modules or "pyarrow" in sys.modules:
        return
    with absent(_PANDAS):
        import pyarrow as pa

        pa.array([0])  # it asks once, and remembers the answer
    sys.meta_path.insert(0, _UntilPandas())
