"""What is right in a file and wrong in a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from streams_operator.model import Defaults
from streams_operator.plan.objects.document import image
from streams_operator.plan.objects.pod import RESERVED
from streams_runtime.api import StreamsApplication
from streams_runtime.api.spark_checks import is_kubernetes
from streams_runtime.errors import Mistake


def cluster_mistakes(application: StreamsApplication, defaults: Defaults) -> Iterator[Mistake]:
    """Mistakes that only the operator can see: a run outside of a cluster brings its own broker and makes no pods."""
    if application.spec.kafka.bootstrap_servers is None:
        remedy = "give host:port of the brokers, several joined by commas"
        yield Mistake("spec.kafka.bootstrapServers", "is missing, and a pod starts no broker of its own", remedy)
    if not image(application, defaults):
        yield Mistake("spec.image", "is missing, and the operator was given no image", "name the runtime's image")
    if is_kubernetes(application.spec.spark.master) and not defaults.executors_as_pods:
        found = f"found {application.spec.spark.master!r}, and the operator may not let pods make pods"
        remedy = "install the chart with rbac.executorsAsPods: true, or write local[*]"
        yield Mistake("spec.spark.master", found, remedy)
    for index, variable in enumerate(application.spec.template.env):
        if variable.name in RESERVED:
            found = f"the variable {variable.name!r} is set by the operator"
            yield Mistake(f"spec.template.env[{index}].name", found, "leave it out")
