"""Fields of a pod that a template does not have, and why: each is refused by name."""

from __future__ import annotations

_HOST = "gives a pod a hold on its node, which the restricted Pod Security Standard forbids"
_KIND = "is no kind of volume that the restricted Pod Security Standard allows"
_FIXED = "is fixed, so that pods meet the restricted Pod Security Standard"
_OURS = "is made by the operator"
_VOLUME = "use persistentVolumeClaim, csi or ephemeral for storage, configMap or secret for files"
_LEAVE = "leave it out"

UNSAFE_FIELDS: dict[tuple[str, str], tuple[str, str]] = {
    ("VolumeSpec", "hostPath"): (f"hostPath {_HOST}", _VOLUME),
    **{
        ("VolumeSpec", kind): (f"{kind} {_KIND}", _VOLUME)
        for kind in (
            *("nfs", "iscsi", "fc", "glusterfs", "rbd", "cephfs", "cinder", "flocker", "quobyte", "scaleIO"),
            *("storageos", "portworxVolume", "vsphereVolume", "photonPersistentDisk", "flexVolume", "gitRepo"),
            *("awsElasticBlockStore", "azureDisk", "azureFile", "gcePersistentDisk", "image"),
        )
    },
    **{
        ("SecurityContextSpec", field): (f"{field} {_FIXED}", _LEAVE)
        for field in (
            *("privileged", "allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem", "procMount"),
            *("seLinuxOptions", "sysctls", "windowsOptions", "appArmorProfile"),
        )
    },
    ("VolumeMountSpec", "mountPropagation"): (f"mountPropagation {_HOST}", _LEAVE),
    **{("TemplateSpec", field): (f"{field} {_HOST}", _LEAVE) for field in ("hostNetwork", "hostPID", "hostIPC")},
    **{
        ("TemplateSpec", field): (f"{field} {_OURS}", "use the template's other fields, or an image of your own")
        for field in ("containers", "initContainers", "restartPolicy", "hostname", "subdomain")
    },
}
"""(model, field) → what is to be said of it, and what would do."""
