"""What is right in a file and wrong in a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from streams_operator import names
from streams_operator.model import Defaults
from streams_operator.plan.objects.document import image
from streams_operator.plan.objects.pod_manifest import RESERVED
from streams_operator.plan.objects.volumes import ACCOUNT_VOLUME, RESERVED_VOLUMES, folder_in_the_way
from streams_runtime.api import StreamsApplication
from streams_runtime.api.checks.spark_checks import is_kubernetes
from streams_runtime.api.checks.state_checks import memory_mistakes
from streams_runtime.api.checks.volume_checks import mount_place
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
    if application.spec.template.resources is None and defaults.resources is not None:
        where = "the chart's default; spec.template.resources is absent"
        yield from memory_mistakes(application.spec.state.rocksdb, defaults.resources.limits, where)
    yield from _template(application)
    yield from _snapshots(application)


def _template(application: StreamsApplication) -> Iterator[Mistake]:
    """What the template says of things that the operator makes."""
    at, template = "spec.template", application.spec.template
    for index, variable in enumerate(template.env):
        if variable.name in RESERVED:
            found = f"the variable {variable.name!r} is set by the operator"
            yield Mistake(f"{at}.env[{index}].name", found, "leave it out")
    for index, volume in enumerate(template.volumes):
        if volume.name in RESERVED_VOLUMES or volume.name.startswith(ACCOUNT_VOLUME):
            found = f"the volume {volume.name!r} is the operator's"
            yield Mistake(f"{at}.volumes[{index}].name", found, "take another name")
        claim = volume.persistent_volume_claim
        if claim is not None and names.ordinal(claim.claim_name, f"state-{application.name}") is not None:
            found = f"the claim {claim.claim_name!r} is for the stores of one instance"
            yield Mistake(f"{at}.volumes[{index}].persistentVolumeClaim.claimName", found, "take another claim")
    for index, mount in enumerate(template.volume_mounts):
        folder = folder_in_the_way(mount.mount_path)
        if folder is not None:
            found = f"{mount.mount_path} lies over, under or at {folder}, which the runtime needs as it is"
            yield Mistake(f"{at}.volumeMounts[{index}].mountPath", found, "mount it elsewhere, such as below /mnt")


def _snapshots(application: StreamsApplication) -> Iterator[Mistake]:
    """A folder for snapshots that would go with its pod, or that nobody could write into."""
    snapshots, template = application.spec.state.snapshots, application.spec.template
    if snapshots is None or not snapshots.url.startswith("file:"):
        return
    folder = snapshots.url.removeprefix("file://")
    above = [each for each in template.volume_mounts if f"{folder}/".startswith(f"{mount_place(each.mount_path)}/")]
    at, found = "spec.state.snapshots.url", f"found {snapshots.url!r}"
    remedy = "mount a persistentVolumeClaim there that several pods can write into, or give the url of a bucket"
    if not above:
        yield Mistake(at, f"{found}, and no volume of spec.template is mounted at {folder} or above it", remedy)
        return
    mount = max(above, key=lambda each: len(each.mount_path))
    volume = next(each for each in template.volumes if each.name == mount.name)
    claim, csi = volume.persistent_volume_claim, volume.csi
    if claim is None and csi is None:
        yield Mistake(at, f"{found}, where {mount.name} is mounted, a volume that goes with its pod", remedy)
    elif mount.read_only or (claim and claim.read_only) or (csi and csi.read_only):
        yield Mistake(at, f"{found}, where {mount.name} is mounted for reading only", "let it be written into")
