"""What `helm test` looks at: operators that answer and act, and an API server that takes StreamsApplications.

Arguments: the namespaces in which one is tried; nothing is created. Ends with 1, and a line for each wrong thing.
"""

import os
import sys
import time
import urllib.request
from datetime import UTC, datetime

from kubernetes import client, config

GROUP, VERSION, PLURAL = "streamsoperator.io", "v1alpha1", "streamsapplications"
PATIENCE = float(os.environ.get("TEST_PATIENCE", "90"))  # seconds that an operator may take to start and to be elected
LEASE = 15  # seconds that a Lease is good for
SOURCE = {"name": "orders", "topic": "orders", "value": {"format": "json", "schema": "amount DOUBLE"}}


def application(where):
    """A minimal one, with an expression that the definition can't judge."""
    steps = [{"name": "paid", "from": "orders", "where": where}]
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "StreamsApplication",
        "metadata": {"name": "helm-test"},
        "spec": {
            "kafka": {"bootstrapServers": "kafka:9092"},
            "topology": {"sources": [SOURCE], "steps": steps, "sinks": [{"from": "paid", "topic": "paid"}]},
        },
    }


def operators(namespace, selector, port):
    """What is wrong with the operators' pods."""
    pods = client.CoreV1Api().list_namespaced_pod(namespace, label_selector=selector).items
    pods = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    if not pods:
        yield f"no pod of the operator in {namespace}: kubectl describe deployments --namespace {namespace}"
    for pod in pods:
        where = f"http://{pod.status.pod_ip}:{port}/readyz"
        try:
            if not pod.status.pod_ip:
                raise OSError(f"it has no address, as it is {pod.status.phase}")
            with urllib.request.urlopen(where, timeout=5) as answer:
                print(f"{pod.metadata.name} answers {answer.status} at {where}", flush=True)
        except OSError as error:
            yield f"{pod.metadata.name} is not ready: {error}; kubectl logs --namespace {namespace} {pod.metadata.name}"


def leases(namespace, names):
    """Leases that no operator holds at the moment: nobody acts."""
    api = client.CoordinationV1Api()
    for name in names:
        try:
            lease = api.read_namespaced_lease(name, namespace).spec
        except client.ApiException as error:
            yield f"the Lease {name} can't be read: {error.status} {error.reason}"
            continue
        age = (datetime.now(UTC) - lease.renew_time).total_seconds() if lease.renew_time else None
        if not lease.holder_identity or age is None or age > LEASE:
            yield f"no operator has renewed the Lease {name} within {LEASE} s, so none acts"
        else:
            print(f"{lease.holder_identity} acts by the Lease {name}", flush=True)


def tried(namespace, where):
    """Why the API server refuses an application; None: it would take it."""
    options = {"dry_run": "All", "field_validation": "Strict"}
    try:
        client.CustomObjectsApi().create_namespaced_custom_object(
            GROUP, VERSION, namespace, PLURAL, application(where), **options
        )
    except client.ApiException as error:
        return f"{error.status} {error.reason}: {error.body}"
    return None


def definition(namespace, webhook):
    """What is wrong with how the API server judges applications."""
    if refused := tried(namespace, "amount > 0"):
        yield f"the API server refuses a minimal StreamsApplication in {namespace}: {refused}"
        return
    print(f"the API server takes a StreamsApplication in {namespace}", flush=True)
    if not webhook:
        return
    refused = tried(namespace, "nobody > 0")
    if refused is None or "nobody" not in refused:
        yield f"the webhook does not refuse an unknown column in {namespace}: {refused or 'it was accepted'}"
    else:
        print(f"the webhook refuses an unknown column in {namespace}", flush=True)


def wrong(namespaces):
    """Everything that is wrong at the moment."""
    own, webhook = os.environ["OPERATOR_NAMESPACE"], os.environ["OPERATOR_WEBHOOK"] == "true"
    yield from operators(own, os.environ["OPERATOR_SELECTOR"], os.environ["OPERATOR_HEALTH_PORT"])
    yield from leases(own, os.environ["OPERATOR_LEASES"].split(","))
    for namespace in namespaces:
        yield from definition(namespace, webhook)


def main(namespaces):
    """Looks until all is well or patience ends: after an install the operator still starts."""
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        config.load_incluster_config()
    else:
        config.load_kube_config()
    deadline = time.monotonic() + PATIENCE
    while found := list(wrong(namespaces)):
        if time.monotonic() > deadline:
            sys.exit("\n".join(found))
        print(f"{len(found)} things are not as they should be; looking again", flush=True)
        time.sleep(2)


main(sys.argv[1:])
