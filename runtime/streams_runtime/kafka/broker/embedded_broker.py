"""A real Apache Kafka in one child process: for `streamsapp` without an address, for tests and the demo."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from streams_runtime.errors import BrokerNotAvailableException, EnvironmentException
from streams_runtime.jvm.child import TiedProcess
from streams_runtime.jvm.class_data import broker_class_data
from streams_runtime.jvm.jars import broker_jars
from streams_runtime.jvm.java import find_java
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.broker_config import (
    HOST,
    NODE_ID,
    ClusterNode,
    as_properties_file,
    cluster_properties,
    logging_properties,
    server_properties,
)
from streams_runtime.kafka.broker.broker_folder import BrokerFolder
from streams_runtime.kafka.broker.ports import free_ports, require_free
from streams_runtime.kafka.broker.storage_format import format_storage, new_id

_STOP_GRACE = 30.0
_TICK = 0.05
_OPTIONS_VARIABLE = "KAFKA_JVM_PERFORMANCE_OPTS"
_JVM_OPTIONS = ("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")


class EmbeddedBroker:
    """Broker and controller in one JVM, on the loopback address, with all of its data in one folder.

    `start`, `stop` and `start` again work on one object, at one port, and a later object goes on with the
    same folder's topics. The JVM dies with this process, however that ends. Use it in `with`, or call `stop`.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        config: Mapping[str, str] | None = None,
        heap: str = "512m",
        timeout: float = 120.0,
        jvm_options: Sequence[str] | None = None,
        node: ClusterNode | None = None,
        advertised_port: int | None = None,
    ) -> None:
        """Does not start anything.

        `port` None takes a free one at the first start; `advertised_port` is the one that clients are told, where
        another process stands between them and the broker. `config` holds broker properties. `heap` is the JVM's
        upper limit, as -Xmx takes it; other options the environment may give, in the variable of Kafka's own scripts
        (KAFKA_JVM_PERFORMANCE_OPTS). `timeout` is in seconds, for the broker to answer after its start. `jvm_options`
        replace those by which the JVM starts with class data (class_data.py). `node` makes it one of several
        (EmbeddedCluster), with the ports that are given there.
        """
        self._folder = BrokerFolder(data_dir)
        self._node = node
        self._cluster_id = new_id() if node is None else node.cluster_id
        self._port = port if node is None else node.advertised[node.id].clients
        self._config = dict(config or {})
        self._heap = heap
        self._timeout = timeout
        self._jvm_options = jvm_options
        self._advertised_port = advertised_port
        self._process: TiedProcess | None = None

    @property
    def data_dir(self) -> Path:
        """The folder with the broker's data (`kafka/`), settings and logs (`logs/server.log`)."""
        return self._folder.root

    @property
    def port(self) -> int:
        """The port for clients. Raises EnvironmentException while none was given and none taken yet."""
        if self._port is None:
            raise EnvironmentException("the embedded broker has no port before it is started. Start it first")
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, `host:port`. Raises what `port` raises."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The JVM's process id; None when it does not run."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        """Whether the JVM is alive."""
        return self._process is not None and self._process.exit_code is None

    def start(self) -> None:
        """Start, and return when the broker answers clients. Does nothing when it runs already.

        Raises EnvironmentException: no Java or jars; the port or the folder is in use; the folder can't be
        written; the broker ended by itself, or did not answer in time (with its last log lines). Nothing is
        left running then.
        """
        if self.running:
            return
        # A broker that died by itself still holds its folder here.
        self._folder.release()
        try:
            self._start()
        except BaseException:
            self.kill()
            raise

    def stop(self, grace: float = _STOP_GRACE) -> bool:
        """Stop in order (SIGTERM) and wait; after `grace` seconds, kill. May be called twice.

        True when the broker ended by itself. Its data is whole either way: after a kill the next start reads
        the last segments again.
        """
        in_order = self._process is None or self._process.stop(grace)
        self._process = None
        self._folder.release()
        return in_order

    def kill(self) -> None:
        """SIGKILL: what a crash would be. May be called twice."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        self._folder.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the broker ended within `timeout` seconds (None: wait as long as it takes)."""
        return self._process is None or self._process.wait(timeout)

    def why_it_ended(self) -> str:
        """For a broker that ended by itself: the exit code and its last log lines."""
        words = self._folder.last_words()
        if "Address already in use" in words:
            return (
                f"port {self.port} of {HOST} was taken while the broker started. Start it again, or give another port"
            )
        code = self._process.exit_code if self._process is not None else None
        return (
            f"the embedded broker ended by itself (exit code {code})."
            f" Its last log lines, of {self._folder.log}:\n{words}"
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> None:
        folder = self._folder
        folder.acquire()
        java, classpath = find_java(), os.pathsep.join(map(str, broker_jars()))
        properties = self._properties()
        folder.settings.write_text(as_properties_file(properties))
        folder.logging.write_text(logging_properties(folder.logs))
        command = [
            *(str(java), f"-Xmx{self._heap}", *(os.environ.get(_OPTIONS_VARIABLE, "").split() or _JVM_OPTIONS)),
            *(f"-Dlog4j2.configurationFile={folder.logging.as_uri()}", "-cp", classpath),
        ]
        class_data = broker_class_data().options
        if folder.needs_format():
            number = NODE_ID if self._node is None else self._node.id
            format_storage([*command, *class_data], folder, number, self._cluster_id, self._config)
        command += class_data if self._jvm_options is None else self._jvm_options
        self._process = TiedProcess([*command, "kafka.Kafka", str(folder.settings)], folder.console, folder.root)
        self._wait_until_ready(self._process)

    def _properties(self) -> dict[str, str]:
        data = self._folder.data
        if self._node is not None:
            for port in (self._node.ports.clients, self._node.ports.brokers, self._node.ports.controllers):
                require_free(port)
            return cluster_properties(data, self._node, self._config)
        if self._port is None:
            self._port, controller = free_ports(2)
        else:
            require_free(self._port)
            (controller,) = free_ports(1)
        return server_properties(data, self._port, controller, self._config, self._advertised_port)

    def _wait_until_ready(self, process: TiedProcess) -> None:
        end = time.monotonic() + self._timeout
        while not process.wait(_TICK):
            if time.monotonic() > end:
                raise EnvironmentException(
                    f"the embedded broker did not answer at {self.bootstrap_servers}"
                    f" within {self._timeout:g} s. Its last log lines, of"
                    f" {self._folder.log}:\n{self._folder.last_words()}"
                )
            # Not at the advertised port: what stands between need not let this process through.
            port = self.port if self._node is None else self._node.ports.clients
            if not _accepts(port):
                continue
            # A broker answers only once it may lead partitions, so an answer means that it is ready.
            admin = Admin({"bootstrap.servers": f"{HOST}:{port}"}, timeout=5.0)
            with contextlib.closing(admin), contextlib.suppress(BrokerNotAvailableException):
                if admin.wait_for_broker(lambda _: None, lambda: process.wait(0), timeout=1.0):
                    return
        raise EnvironmentException(self.why_it_ended())


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1.0):
        return True
    return False
