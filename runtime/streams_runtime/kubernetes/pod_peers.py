"""Where the other pods of an application answer: derived from their names, so that Kubernetes vouches for them."""

from __future__ import annotations

from streams_runtime.query.client.sibling_names import is_sibling


class PodPeers:
    """settings.Peers of a pod. A sibling's address differs from the pod's own by the ordinal alone.

    The cluster's DNS gives such a name to a pod of the application's headless Service or to nobody, whoever joins the
    Kafka group under it.
    """

    def __init__(self, pod: str, advertised: str, scheme: str) -> None:
        """`advertised` is the pod's own address: POD.SERVICE.NAMESPACE.svc:PORT."""
        self._pod = pod
        self._service = advertised.removeprefix(pod)
        self._scheme = scheme

    def __call__(self, instance: str) -> str | None:
        """The URL of the pod `instance`; None for what is no name of one of the application's pods."""
        return f"{self._scheme}://{instance}{self._service}" if is_sibling(self._pod, instance) else None
