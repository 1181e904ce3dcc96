"""Names, labels and annotations of everything that belongs to an application. Pods and operator agree by them."""

from __future__ import annotations

import re

GROUP = "streamsoperator.io"
PLURAL = "streamsapplications"

LABEL_APPLICATION = "streamsoperator.io/application"
LABEL_EXECUTORS = "streamsoperator.io/executors-of"
"""Of pods that Spark's executors are: the runtime sets it (pipeline.spark.executor_template)."""
LABEL_NAMESPACE = "kubernetes.io/metadata.name"
"""Of each namespace: its name. Kubernetes sets it."""
LABEL_ORDINAL = "streamsoperator.io/ordinal"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "streams-operator"
"""Value of LABEL_MANAGED_BY, and the field manager of every server-side apply."""

ANNOTATION_SPEC = "streamsoperator.io/spec"
"""On a pod: the digest of what it was made from; another one than the desired pod's means: replace."""
ANNOTATION_NONCE = "streamsoperator.io/restart-nonce"
"""On a pod: spec.restartNonce when it was made."""

ANNOTATION_IMAGE = "streamsoperator.io/image"
"""On a pod: the image that it was to have. What its container has may be a mirror's name: admission may change it."""
ANNOTATION_INPUTS = "streamsoperator.io/inputs"
"""On a pod of an application with spec.restartOnChange: what it was made with, a JSON object of digests by `Kind/name`.
"""

ANNOTATION_SHUTDOWN = "streamsoperator.io/shutdown-application"
"""On a pod: that its client is to end in ERROR because another one asked for the shutdown of the application. JSON with
`instance`, `class` and `message` of who asked; any other text is a person's reason. The kubelet shows it to the pod as
the file SHUTDOWN_MOUNT/SHUTDOWN_FILE.
"""
ANNOTATION_PAUSED = "streamsoperator.io/paused"
"""On a pod: `true` while its client is to process nothing (spec.paused). The kubelet shows it to the pod as the file
SHUTDOWN_MOUNT/PAUSE_FILE.
"""
PAUSED = "true"
"""The text of ANNOTATION_PAUSED, of which a pod that processes has none."""
ANNOTATION_LEAVE = "streamsoperator.io/leave-group"
"""On a pod that is removed for good: `true`, so that its client leaves the group when it closes (KIP-812). The others
have its partitions at once then, and not when its session has ended.
"""
LEAVING = "true"
"""The text of ANNOTATION_LEAVE, of which a pod that comes back under its name has none."""
ANNOTATION_HOLD = "streamsoperator.io/pause-reconciliation"
"""On the resource, by a person: `true` while the operator is to change nothing for it but its status."""

FINALIZER = "streamsoperator.io/close-in-order"

CONDITION_RUNNING = "streamsoperator.io/Running"
"""Pod condition and readiness gate: True in RUNNING; reason is the client's state (KIP-696)."""
CONDITION_RESTORED = "streamsoperator.io/Restored"
"""Pod condition: True when no store of the pod is being restored; message: `N records left`."""
CONDITION_SPARK_READY = "streamsoperator.io/SparkReady"
"""Pod condition: False while its client may be RUNNING already, and Spark, which may refuse the topology, starts."""
CONDITION_RESTARTABLE = "streamsoperator.io/Restartable"
"""Pod condition: False from PENDING_ERROR on; reason: exception class, message: its text."""
CONDITION_SHUTDOWN_REQUESTED = "streamsoperator.io/ShutdownRequested"
"""Pod condition: True when its client asks for the shutdown of the application; reason: exception class, message: its
text. The termination message says the same as `"shutdown": "application"`.
"""
CONDITION_PAUSED = "streamsoperator.io/Paused"
"""Pod condition: True while its client is paused; not there when it never was."""

CONTAINER = "streams"
QUERY_PORT = 8080
CONFIG_FILE = "application.json"
"""Key in the ConfigMap; with `.gz` behind it when the application is long."""
CONFIG_MOUNT = "/etc/streams/application"
SECRET_MOUNT = "/etc/streams/kafka"
CODE_MOUNT = "/etc/streams/code"
REGISTRY_MOUNT = "/etc/streams/schema-registry"
STATE_MOUNT = "/var/lib/streams"
QUERY_ACCESS_MOUNT = "/etc/streams/queries/access"
QUERY_TOKEN_FILE = "token"
QUERY_TLS_MOUNT = "/etc/streams/queries/tls"
SHUTDOWN_MOUNT = "/etc/streams/told"
SHUTDOWN_FILE = "shutdown-application"
PAUSE_FILE = "paused"


def pod(application: str, ordinal: int) -> str:
    """Name of an application's pod, which is also the client's static name in the group."""
    return f"{application}-{ordinal}"


def ordinal(pod: str, application: str) -> int | None:
    """The pod's number, if its name is one that this application's pods have."""
    number = pod.removeprefix(f"{application}-")
    well_formed = number != pod and re.fullmatch(r"0|[1-9][0-9]{0,8}", number)
    return int(number) if well_formed else None


def claim(application: str, ordinal: int) -> str:
    """Name of the volume claim that keeps a pod's state."""
    return f"state-{application}-{ordinal}"


def config(application: str, digest: str) -> str:
    """Name of the ConfigMap with one version of the application."""
    return f"{application}-{digest}"


def service(application: str) -> str:
    """Name of the headless Service, in which each pod has a name of its own."""
    return application


def access(application: str) -> str:
    """Name of the ServiceAccount, the Role and the RoleBinding by which pods report their conditions."""
    return f"{application}-streams"
