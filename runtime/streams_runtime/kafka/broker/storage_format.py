"""What a broker's storage is given before its first start: its identity, and the features that the cluster begins with.

Kafka's tool for it is a JVM of its own. The features follow from the version and the properties alone, so what it has
written for one broker serves the others of this process that have the same properties; only the identity is theirs.
"""

from __future__ import annotations

import subprocess
import threading
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from streams_runtime.errors import EnvironmentException
from streams_runtime.kafka.broker.broker_folder import BrokerFolder, without_stack

_TIMEOUT = 60.0
_METADATA = "__cluster_metadata-0"
_FEATURES = "00000000000000000000-0000000000.checkpoint"
_Key = tuple[tuple[str, ...], frozenset[tuple[str, str]]]
_known: dict[_Key, bytes] = {}
_one_at_a_time = threading.Lock()


def format_storage(
    command: Sequence[str], folder: BrokerFolder, node: int, cluster_id: str, config: Mapping[str, str]
) -> None:
    """Give new storage its identity. `command` starts a JVM with Kafka's classes, `config` are the properties that one
    broker has and another need not; the folder has the whole of them.

    Raises EnvironmentException: the tool refuses, or takes too long; what to do.
    """
    with _one_at_a_time:
        # Without what names a folder.
        key = (tuple(part for part in command if not part.startswith("-D")), frozenset(config.items()))
        if key in _known:
            _write(folder.data, node, cluster_id, _known[key])
        else:
            _run_tool(command, folder, cluster_id)
            _known[key] = (folder.data / _METADATA / _FEATURES).read_bytes()


def _write(data: Path, node: int, cluster_id: str, features: bytes) -> None:
    data.mkdir()
    identity = {"version": "1", "cluster.id": cluster_id, "node.id": str(node), "directory.id": new_id()}
    (data / "meta.properties").write_text("".join(f"{name}={value}\n" for name, value in identity.items()))
    # The folder of this name says that the storage is whole.
    unfinished = data.with_name(f"{data.name}.new")
    unfinished.mkdir(exist_ok=True)
    (unfinished / _FEATURES).write_bytes(features)
    unfinished.rename(data / _METADATA)


def _run_tool(command: Sequence[str], folder: BrokerFolder, cluster_id: str) -> None:
    tool = ["kafka.tools.StorageTool", "format", "--cluster-id", cluster_id, "--config", str(folder.settings)]
    try:
        done = subprocess.run(
            [*command, *tool],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise EnvironmentException(
            f"the storage in {folder.data} was not formatted within {_TIMEOUT:.0f} s."
            " Look at the machine's load and at the disk, then try again"
        ) from late
    if done.returncode != 0:
        words = without_stack(done.stdout + done.stderr)
        raise EnvironmentException(
            f"the broker's storage in {folder.data} can't be formatted: {' '.join(words[-3:])}."
            " Correct the setting that is named, or give another folder (--data-dir)"
        )


def new_id() -> str:
    """A name for a cluster, or for storage that is to be formatted."""
    # Kafka's ids are 22 characters of base64; one that begins with a dash would read as an option.
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text
