"""An executor's pod, made from the pod of the instance that it works for; what Spark adds is left to Spark. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from streams_runtime.errors import EnvironmentException

Json = Mapping[str, Any]

CONTAINER = "streams"
"""The container of an instance's pod, as the operator calls it."""
LABEL = "streamsoperator.io/executors-of"
"""Label of executors: the application's name. They do not have the one by which the operator knows its own pods."""
NOT_THEIRS = ("POD_NAME", "POD_NAMESPACE", "POD_UID", "STREAMSAPP_SERVICE", "STREAMSAPP_GRACE_SECONDS")
"""Environment variables that say which pod an instance is."""
_COMMAND = ("python", "-m", "streams_runtime.cli.process.executor")
_TAKEN = ("code", "kafka")  # volumes: the user's modules, and files that client properties name
_WHERE = ("nodeSelector", "tolerations", "imagePullSecrets", "runtimeClassName", "priorityClassName")
_MOST_OF_PREFIX = 38  # characters: Spark puts up to 25 behind it, and a label has 63
_OF_UID = 8


def container_of(pod: Json) -> Json:
    """The instance's own container.

    Raises EnvironmentException: it has none of that name, so it was not made by the operator.
    """
    for each in pod["spec"]["containers"]:
        if each["name"] == CONTAINER:
            found: Json = each
            return found
    raise EnvironmentException(
        f"the pod {pod['metadata']['name']} has no container {CONTAINER}, of which executors could be made; let the"
        " operator make it, or use another spec.spark.master"
    )


def executor_template(pod: Json, application: str, volumes: Collection[str] = ()) -> dict[str, Any]:
    """A pod for Spark to complete: as restricted as the instance's, on such nodes as it, with the user's modules and
    `volumes`, those of spec.template.

    It has no token of the account: only the instance talks to the API server. Raises EnvironmentException: see
    `container_of`.
    """
    spec, own = pod["spec"], container_of(pod)
    taken = [each for each in own.get("volumeMounts") or () if each["name"] in {*_TAKEN, *volumes}]
    names = {each["name"] for each in taken}
    nodes = (spec.get("affinity") or {}).get("nodeAffinity")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {LABEL: application}, "ownerReferences": [_owner(pod)]},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "serviceAccountName": spec.get("serviceAccountName", "default"),
            "securityContext": spec.get("securityContext") or {},
            **{name: spec[name] for name in _WHERE if spec.get(name)},
            # Of pods beside which an instance may be, or not, it speaks for the instances.
            **({"affinity": {"nodeAffinity": nodes}} if nodes else {}),
            "containers": [
                {
                    "name": "executor",
                    "command": list(_COMMAND),
                    "env": [each for each in own.get("env") or () if each["name"] not in NOT_THEIRS],
                    "securityContext": own.get("securityContext") or {},
                    "volumeMounts": [*taken, {"name": "tmp", "mountPath": "/tmp"}],
                }
            ],
            "volumes": [
                *(each for each in spec.get("volumes") or () if each["name"] in names),
                {"name": "tmp", "emptyDir": {}},
            ],
        },
    }


def _owner(pod: Json) -> dict[str, Any]:
    """The pod that executors go with, whatever it ends by.

    Spark writes the same when it is told the driver's pod; then it also waits for that to be ready, which an instance
    is only when it has executors.
    """
    metadata = pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}


def name_prefix(pod: Json) -> str:
    """What the names of an instance's executors begin with: its own name, and what no other pod of that name has.

    Executors of the pod before may not have gone yet.
    """
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"][:_OF_UID]
    return f"{name[: _MOST_OF_PREFIX - _OF_UID - 1].rstrip('-')}-{uid}"
