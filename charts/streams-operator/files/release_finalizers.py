"""Takes the operator's finalizer off every application, after the operator has gone: nothing waits for it any more.

Without a namespace as an argument, in the whole cluster. Run twice it does the same as once.
"""

import os
import sys
import time

from kubernetes import client, config

GROUP, VERSION, PLURAL = "streamsoperator.io", "v1alpha1", "streamsapplications"
FINALIZER = "streamsoperator.io/close-in-order"
PATIENCE = 60.0  # seconds that a stopping operator may take; it would put the finalizer back


def wait_for_the_end_of(namespace: str, selector: str) -> None:
    """Returns when no pod of the operator is left, or when patience ends."""
    deadline = time.monotonic() + PATIENCE
    while client.CoreV1Api().list_namespaced_pod(namespace, label_selector=selector).items:
        if time.monotonic() > deadline:
            print(f"pods with {selector} are still there after {PATIENCE:.0f} s; going on", flush=True)
            return
        time.sleep(1)


def release(namespace: str) -> int:
    """Number of applications of a namespace ("": of all) that still had the finalizer."""
    api, count = client.CustomObjectsApi(), 0
    if namespace:
        found = api.list_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL)
    else:
        found = api.list_cluster_custom_object(GROUP, VERSION, PLURAL)
    for item in found["items"]:
        metadata = item["metadata"]
        if FINALIZER not in metadata.get("finalizers", ()):
            continue
        left = [each for each in metadata["finalizers"] if each != FINALIZER]
        # The version: whoever else changes finalizers meanwhile must not lose theirs.
        change = {"metadata": {"finalizers": left, "resourceVersion": metadata["resourceVersion"]}}
        try:
            api.patch_namespaced_custom_object(GROUP, VERSION, metadata["namespace"], PLURAL, metadata["name"], change)
        except client.ApiException as error:
            if error.status not in (404, 409):
                raise
        else:
            print(f"released {metadata['namespace']}/{metadata['name']}", flush=True)
        count += 1
    return count


def main(namespaces: list[str]) -> None:
    """Until a look finds nothing more to do. Raises kubernetes' ApiException: the Job starts it again."""
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        config.load_incluster_config()
    else:
        config.load_kube_config()
    wait_for_the_end_of(os.environ["OPERATOR_NAMESPACE"], os.environ["OPERATOR_SELECTOR"])
    for namespace in namespaces or [""]:
        while release(namespace):
            pass


main(sys.argv[1:])
