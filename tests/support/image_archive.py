"""An image in one file, as Docker or as OCI has it: its configuration, and the files of its layers."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
Kept = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class ImageArchive:
    """An archive. `digest` and `annotations` are the manifest's, which only an OCI archive has."""

    file: Path
    config: Mapping[str, Any]
    layers: tuple[str, ...]
    digest: str = ""
    annotations: Mapping[str, str] | None = None

    @property
    def labels(self) -> Mapping[str, str]:
        """What the image says of itself."""
        return self.config.get("config", {}).get("Labels") or {}

    @classmethod
    def of(cls, file: Path) -> ImageArchive:
        """Raises KeyError for a file that is neither kind of archive, and for one with several images ValueError."""
        with tarfile.open(file) as archive:
            if "index.json" not in archive.getnames():
                (image,) = _json(archive, "manifest.json")
                return cls(file, _json(archive, image["Config"]), tuple(image["Layers"]))
            (entry,) = _json(archive, "index.json")["manifests"]
            manifest = _json(archive, _blob(entry))
            layers = tuple(_blob(layer) for layer in manifest["layers"])
            config = _json(archive, _blob(manifest["config"]))
            return cls(file, config, layers, entry["digest"], manifest.get("annotations") or {})

    def files(self, kept: Kept) -> dict[str, bytes]:
        """Content of the files whose path `kept` wants, as a container sees them: a later layer's over an earlier's."""
        found: dict[str, bytes] = {}
        with tarfile.open(self.file) as archive:
            for name in self.layers:
                with _layer(archive, name) as layer:
                    _lay(found, layer, kept)
        return found


def _lay(found: dict[str, bytes], layer: tarfile.TarFile, kept: Kept) -> None:
    """One layer over those below it."""
    new: dict[str, bytes] = {}
    for member in layer:
        path = PurePosixPath(member.name.lstrip("./"))
        if path.name == _OPAQUE:
            _remove(found, str(path.parent))
        elif path.name.startswith(_WHITEOUT):
            _remove(found, str(path.with_name(path.name.removeprefix(_WHITEOUT))))
        elif kept(str(path)) and (member.isfile() or member.islnk()):
            content = layer.extractfile(member)
            new[str(path)] = content.read() if content is not None else b""
        elif not member.isdir():
            found.pop(str(path), None)
    found |= new


def _remove(found: dict[str, bytes], path: str) -> None:
    for each in [each for each in found if each == path or each.startswith(f"{path}/")]:
        del found[each]


@contextmanager
def _layer(archive: tarfile.TarFile, name: str) -> Iterator[tarfile.TarFile]:
    member = archive.getmember(name)
    # Docker's archives name a layer that several images have by a link to it.
    content = archive.extractfile(member)
    if content is None:
        raise KeyError(f"{name} is no file of the archive")
    with tarfile.open(fileobj=content) as layer:
        yield layer


def _blob(descriptor: Mapping[str, Any]) -> str:
    return "blobs/" + str(descriptor["digest"]).replace(":", "/")


def _json(archive: tarfile.TarFile, name: str) -> Any:
    content: IO[bytes] = archive.extractfile(name) or io.BytesIO()
    return json.load(content)
