"""Where the other instances of a local run answer, and how they ended: files in the run's folder say it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streams_runtime.cli.local.run_folders import InstanceFolder
from streams_runtime.query.client.sibling_names import is_sibling
from streams_runtime.settings import LastWords, Peers, no_last_words, no_peers


class RunPeers:
    """settings.Peers of an instance of a local run. Only who may write into the run's folder can name an address."""

    def __init__(self, own: str, root: Path) -> None:
        """`own` is the instance's name, `root` the folder of the run's instances."""
        self._own = own
        self._root = root

    def __call__(self, instance: str) -> str | None:
        """The URL of `instance`; None for what is none of the run, or does not run."""
        if not is_sibling(self._own, instance):
            return None  # a path is made of it
        return InstanceFolder(self._root / instance).url

    def last_words(self, instance: str) -> Mapping[str, str | None] | None:
        """settings.LastWords: the termination message of `instance`; None for one that runs, or is none of the run."""
        if not is_sibling(self._own, instance):
            return None
        found = InstanceFolder(self._root / instance).last_words()
        return None if found is None else {name: found.get(name) for name in ("state", "class", "message")}


def siblings_of(own: str, root: Path | None) -> tuple[Peers, LastWords]:
    """What the settings of the instance `own` say of the others; None: it is of no run, and knows nobody."""
    if root is None:
        return no_peers, no_last_words
    known = RunPeers(own, root)
    return known, known.last_words
