"""A Kafka broker as a pod, from the runtime's image, which has the broker's jars."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kube_binaries import program
from kube_cluster import Cluster
from kube_pods import pod
from kube_process import LOOPBACK, accepts, free_port, running, temporary_folder

from streams_runtime.kafka.broker.broker_config import as_properties_file, server_properties

NAMESPACE = "kafka"
NAME = "kafka"
_PORT = 9092
_CONTROLLER_PORT = 9093
_ADDRESS = f"{NAME}.{NAMESPACE}.svc.cluster.local"
_SETTINGS = "server.properties"
_READY = "180s"
_READY_TIMEOUT = 200.0
_REQUESTS = {"cpu": "500m", "memory": "512Mi"}
"""Without any it is best effort, and gets a hundredth of a processor beside applications that compute: its clients'
sessions end, and what they had not committed is processed again.
"""
# The broker writes its logs to the container's output only.
_LOGGING = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c{1})%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""
_START = """\
set -e
classpath=$(find "$STREAMSAPP_CACHE"/jars/broker-* -name '*.jar' | paste -sd:)
jvm="-Xmx512m -XX:TieredStopAtLevel=1 -Djava.awt.headless=true"
run="java $jvm -Dlog4j2.configurationFile=/etc/kafka/log4j2.properties -cp $classpath"
$run kafka.tools.StorageTool format --cluster-id 4L6g3nShT-eMCtK--X86sw --config /etc/kafka/server.properties
exec $run kafka.Kafka /etc/kafka/server.properties
"""


@dataclass(frozen=True, slots=True)
class KafkaInCluster:
    """A broker that pods and this machine reach, each at an address of its own."""

    cluster: Cluster
    bootstrap_servers: str
    """Address for pods of every namespace."""
    outside: str
    """Address for this machine; it leads through the API server, so it is not for measurements."""

    def alias(self, namespace: str) -> None:
        """Let `kafka:9092` mean this broker in a namespace."""
        spec = {"type": "ExternalName", "externalName": _ADDRESS}
        metadata = {"name": NAME, "namespace": namespace}
        self.cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


@contextmanager
def kafka_pod(cluster: Cluster, image: str, node: str | None = None) -> Iterator[KafkaInCluster]:
    """The broker behind the Service `kafka` in the namespace `kafka`, ready for clients; it goes with the block.

    `node` is where it is to be; None: anywhere.
    """
    port = free_port()
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s", f"--namespace={NAMESPACE}")
    try:
        cluster.apply(*_objects(image, port, node))
        ready = ("wait", "--for=condition=Ready", f"pod/{NAME}", f"--timeout={_READY}", f"--namespace={NAMESPACE}")
        cluster.kubectl(*ready, timeout=_READY_TIMEOUT)
        with temporary_folder("kafka") as folder:
            forward = ["port-forward", f"--namespace={NAMESPACE}", f"pod/{NAME}", str(port)]
            command = [program("kubectl"), f"--kubeconfig={cluster.kubeconfig}", *forward]
            with running(command, folder, lambda: accepts(port), "port-forward"):
                yield KafkaInCluster(cluster, f"{_ADDRESS}:{_PORT}", f"{LOOPBACK}:{port}")
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def _objects(image: str, port: int, node: str | None) -> list[dict[str, object]]:
    metadata = {"name": NAME, "namespace": NAMESPACE}
    files = {_SETTINGS: as_properties_file(_properties(port)), "log4j2.properties": _LOGGING}
    mounts = [{"name": "tmp", "mountPath": "/tmp"}, {"name": "files", "mountPath": "/etc/kafka"}]
    probe = {"tcpSocket": {"port": _PORT}, "periodSeconds": 1, "failureThreshold": 120}
    broker = pod(
        NAME,
        NAMESPACE,
        image,
        ["sh", "-c", _START],
        container={"volumeMounts": mounts, "readinessProbe": probe, "resources": {"requests": _REQUESTS}},
        volumes=[{"name": "tmp", "emptyDir": {}}, {"name": "files", "configMap": {"name": NAME}}],
        **({} if node is None else {"nodeName": node}),
    )
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": files},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": {"app": NAME}, "ports": [{"name": "kafka", "port": _PORT}]},
        },
        broker,
    ]


def _properties(port: int) -> dict[str, str]:
    listeners = {"PODS": f"{_ADDRESS}:{_PORT}", "OUTSIDE": f"{LOOPBACK}:{port}"}
    bound = {"PODS": _PORT, "OUTSIDE": port}
    return {
        **server_properties(Path("/tmp/kafka"), _PORT, _CONTROLLER_PORT),
        "listeners": ",".join(
            [
                *(f"{name}://0.0.0.0:{number}" for name, number in bound.items()),
                f"CONTROLLER://{LOOPBACK}:{_CONTROLLER_PORT}",
            ]
        ),
        "advertised.listeners": ",".join(f"{name}://{address}" for name, address in listeners.items()),
        "listener.security.protocol.map": "PODS:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PODS",
    }
