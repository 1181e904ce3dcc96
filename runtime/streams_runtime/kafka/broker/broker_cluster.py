"""Several brokers on this machine: for `streamsapp broker --brokers 3`, and for tests in which brokers fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from streams_runtime.errors import EnvironmentException
from streams_runtime.kafka.broker.broker_config import ClusterNode, Ports
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.broker.ports import free_ports
from streams_runtime.kafka.broker.storage_format import new_id

SIZES = (3, 5)
"""How many brokers a cluster may have: those without a majority of controllers on one side of any split are no use."""

_FACTS = "cluster.json"
_STOP_GRACE = 30.0
_TICK = 0.1  # seconds between two looks at whether a broker has ended

Advertise = Callable[[int, Ports], Ports]
"""Where a node is found, by its id and the ports at which it listens."""


class EmbeddedCluster:
    """Brokers that are controllers too, each in a JVM of its own, with all of their data in one folder.

    Topics have three replicas, and `acks=all` needs two of them, so any one broker may be missing. Each broker can be
    stopped, killed and started again by itself (`brokers`). Use it in `with`, or call `stop`.
    """

    def __init__(
        self,
        data_dir: Path,
        size: int = 3,
        port: int | None = None,
        config: Mapping[str, str] | None = None,
        heap: str = "256m",
        timeout: float = 120.0,
        advertise: Advertise = lambda _, ports: ports,
    ) -> None:
        """Does not start anything.

        Clients find the brokers at `port` and the ports behind it; None takes free ones. `config` holds properties of
        all brokers, `heap` is each JVM's upper limit, as -Xmx takes it, and `timeout` is in seconds, for each broker to
        answer. `advertise` is asked once a node.

        Raises EnvironmentException: a size that is not in SIZES; the folder holds something else than a cluster of
        this size, or can't be written.
        """
        if size not in SIZES:
            raise EnvironmentException(
                f"{size} brokers can't be a cluster that goes on without one of them. Give {_listed()}"
            )
        self.data_dir = data_dir.absolute()
        cluster_id = _identity(self.data_dir, size)
        clients = free_ports(size) if port is None else list(range(port, port + size))
        others = free_ports(2 * size)
        listening = {
            number: Ports(*ports)
            for number, ports in enumerate(zip(clients, others[:size], others[size:], strict=True), 1)
        }
        advertised = {number: advertise(number, ports) for number, ports in listening.items()}
        self.brokers: Mapping[int, EmbeddedBroker] = {
            number: EmbeddedBroker(
                self.data_dir / f"broker-{number}",
                config=config,
                heap=heap,
                timeout=timeout,
                node=ClusterNode(number, cluster_id, ports, advertised),
            )
            for number, ports in listening.items()
        }
        """By their ids, from 1."""

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients: all brokers, `host:port,host:port,…`."""
        return ",".join(each.bootstrap_servers for each in self.brokers.values())

    def start(self) -> None:
        """Start those that do not run, at once; returns when each of them answers clients.

        Raises EnvironmentException as EmbeddedBroker does; nothing is left running then.
        """
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            # A broker answers once most of the controllers are there, so none can be waited for alone.
            starts = [pool.submit(broker.start) for broker in self.brokers.values()]
            try:
                for each in wait(starts, return_when=FIRST_EXCEPTION).done:
                    each.result()
            except BaseException:
                # Again and again: one that formats its storage has no process yet.
                while wait(starts, _TICK).not_done:
                    self.kill()
                self.kill()
                raise

    def stop(self, grace: float = _STOP_GRACE) -> bool:
        """Stop all in order, and kill those that still run after `grace` seconds. True when none did."""
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            return all(pool.map(lambda broker: broker.stop(grace), self.brokers.values()))

    def kill(self) -> None:
        """SIGKILL all. May be called twice."""
        for broker in self.brokers.values():
            broker.kill()

    def wait_for_end(self, on_end: Callable[[int, EmbeddedBroker], None]) -> None:
        """Return when all brokers have ended; `on_end` is called for each."""
        left = dict(self.brokers)
        while left:
            time.sleep(_TICK)
            for number in [number for number, broker in left.items() if not broker.running]:
                on_end(number, left.pop(number))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def size_of(data_dir: Path) -> int | None:
    """How many brokers the folder's cluster has; None where there is none, or none yet.

    Raises EnvironmentException: the folder can't be read.
    """
    facts = _facts(data_dir)
    return None if facts is None else int(facts["brokers"])


def _identity(data_dir: Path, size: int) -> str:
    """The id of the folder's cluster, which begins with the first call."""
    facts = _facts(data_dir)
    found = int(facts["brokers"]) if facts else 1 if (data_dir / "kafka").exists() else size
    if found != size:
        raise EnvironmentException(
            f"{data_dir} holds the data of {found} broker{'s' if found != 1 else ''}, and {size} are to start on it."
            f" Give --brokers {found}, or another folder (--data-dir)"
        )
    if facts is None:
        facts = {"cluster_id": new_id(), "brokers": size}
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            unfinished = data_dir / f"{_FACTS}.new"
            unfinished.write_bytes(orjson.dumps(facts))
            unfinished.replace(data_dir / _FACTS)
        except OSError as failure:
            raise _unusable(data_dir, failure) from failure
    return str(facts["cluster_id"])


def _facts(data_dir: Path) -> dict[str, Any] | None:
    """The cluster's id and how many brokers it has."""
    try:
        found: dict[str, Any] = orjson.loads((data_dir / _FACTS).read_bytes())
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise _unusable(data_dir, failure) from failure
    except orjson.JSONDecodeError as failure:
        raise EnvironmentException(
            f"{data_dir / _FACTS} can't be read: {failure}. Give another folder (--data-dir)"
        ) from failure
    return found


def _unusable(data_dir: Path, failure: OSError) -> EnvironmentException:
    return EnvironmentException(
        f"the brokers' data folder {data_dir} can't be used: {(failure.strerror or str(failure)).lower()}."
        " Give one that this user can write (--data-dir)"
    )


def _listed() -> str:
    return " or ".join(map(str, (1, *SIZES))).replace(" or ", ", ", len(SIZES) - 1)
