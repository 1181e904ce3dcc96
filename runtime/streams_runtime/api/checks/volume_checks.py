"""Checks of the volumes of a pod template, and of where they are mounted."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from streams_runtime.api.spec.volumes_spec import VolumeMountSpec, VolumeSpec
from streams_runtime.errors import Mistake

_AT = "spec.template"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_KINDS = "configMap, secret, projected, emptyDir, persistentVolumeClaim, ephemeral, csi or downwardAPI"


def volume_mistakes(volumes: Sequence[VolumeSpec], mounts: Sequence[VolumeMountSpec]) -> Iterator[Mistake]:
    """What volumes and mounts say that no pod can have."""
    yield from _volumes(volumes, {each.name for each in mounts})
    yield from _mounts(mounts, {each.name for each in volumes})


def _volumes(volumes: Sequence[VolumeSpec], mounted: set[str]) -> Iterator[Mistake]:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        field = f"{_AT}.volumes[{index}]"
        if not _NAME.fullmatch(volume.name):
            found = f"found {volume.name!r}, which is no name of a volume"
            yield Mistake(f"{field}.name", found, "use at most 63 small letters, digits, and - between them")
        if volume.name in seen:
            yield Mistake(f"{field}.name", f"the volume {volume.name!r} is given twice", "keep one of the two")
        elif volume.name not in mounted:
            found = f"the volume {volume.name!r} is mounted nowhere"
            yield Mistake(f"{field}.name", found, "add it to volumeMounts, or leave it out")
        seen.add(volume.name)
        given = volume.sources
        if len(given) != 1:
            found = f"names {' and '.join(given)}" if given else "names no kind of volume that is allowed"
            yield Mistake(field, found, "keep one of them" if given else f"give one of {_KINDS}")


def _mounts(mounts: Sequence[VolumeMountSpec], volumes: set[str]) -> Iterator[Mistake]:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        field = f"{_AT}.volumeMounts[{index}]"
        if mount.name not in volumes:
            found = f"there is no volume {mount.name!r} in the template"
            yield Mistake(f"{field}.name", found, "add it to volumes, or correct the name")
        place = mount_place(mount.mount_path)
        if place is None:
            found = f"found {mount.mount_path!r}, which is no path to mount at"
            yield Mistake(f"{field}.mountPath", found, "give an absolute path without .., // and :")
        elif place in seen:
            yield Mistake(f"{field}.mountPath", f"{place} is mounted at twice", "give one of the two another path")
        else:
            seen.add(place)
        if mount.sub_path is not None and not _is_below(mount.sub_path):
            found = f"found {mount.sub_path!r}, which is no path below the volume"
            yield Mistake(f"{field}.subPath", found, "give a relative path without ..")


def mount_place(path: str) -> str | None:
    """The path without a slash at its end; None: nothing can be mounted there."""
    place = path if path == "/" else path.removesuffix("/")
    # normpath keeps two slashes at the beginning, which POSIX leaves to the system.
    clean = posixpath.normpath(place) == place and not place.startswith("//")
    return place if place.startswith("/") and clean and ":" not in place and "\0" not in place else None


def _is_below(path: str) -> bool:
    return not path.startswith("/") and ".." not in path.split("/") and "\0" not in path
