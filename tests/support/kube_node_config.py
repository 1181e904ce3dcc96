"""The configuration files of a node's programs, as text made from values."""

from __future__ import annotations

import json

from kube_binaries import CNI_FOLDER

PAUSE_IMAGE = "localhost/streams-pause:tests"
DOMAIN = "cluster.local"
STORAGE_CLASS = "standard"


def containerd_toml() -> str:
    """containerd: the pause image that is imported, and CNI plugins where Debian has them."""
    return f"""\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # Lowering the score of a sandbox is not allowed everywhere, and then no sandbox starts.
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{CNI_FOLDER}"
  conf_dir = "/run/cni"
"""


def cni_conflist(pods: str) -> str:
    """One bridge for all pods, with addresses of the range `pods`."""
    bridge = {
        "type": "bridge",
        "bridge": "streams-pods",
        "isGateway": True,
        "ipMasq": True,
        # A pod reaches itself through its Service.
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": pods}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, portmap]}, indent=1)


def kubelet_config(address: str, cgroup: str, dns: str, tells_often: bool) -> str:
    """The kubelet, on any machine: with swap, with control groups of version 1, with little disk left.

    `dns` is the address that pods ask for names. `tells_often`: the cluster soon misses it when it is lost.
    """
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": address,
            "healthzBindAddress": address,
            # The API server has no certificate to show to a kubelet; only this machine can reach either.
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroup,
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "clusterDNS": [dns],
            **({"nodeStatusUpdateFrequency": "4s", "nodeLeaseDurationSeconds": 12} if tells_often else {}),
            "clusterDomain": DOMAIN,
            # This machine's search domains are no business of the pods.
            "resolvConf": "",
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
            # A changed Secret or ConfigMap reaches its pods in seconds, not in a minute.
            "syncFrequency": "5s",
        }
    )


def corefile(address: str, kubeconfig: str, health: int) -> str:
    """CoreDNS, for names of the cluster only."""
    return f"""\
{DOMAIN}:53 {{
    bind {address}
    errors
    health {address}:{health}
    kubernetes {DOMAIN} {{
        kubeconfig {kubeconfig} tests
        pods verified
        ttl 1
    }}
}}
.:53 {{
    bind {address}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def storage_class() -> dict[str, object]:
    """The default class: folders of the node, which `volume` makes known."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume_folder(number: int) -> str:
    """The folder of a volume, as the node sees it."""
    return f"/var/lib/volumes/{number}"


def volume(number: int, node: str) -> dict[str, object]:
    """A volume for any claim: of the kind `local`, whose owner becomes the pod's fsGroup."""
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"folder-{number}"},
        "spec": {
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "local": {"path": volume_folder(number)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
        },
    }
