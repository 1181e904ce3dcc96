"""What is in an image, as a CycloneDX bill of materials: Python distributions, jars, and Debian's packages."""

from __future__ import annotations

import io
import re
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from email.parser import BytesHeaderParser
from pathlib import PurePosixPath

from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from image_archive import ImageArchive
from packageurl import PackageURL

_METADATA = re.compile(r".*\.dist-info/METADATA")
_DPKG = "var/lib/dpkg/status"
_RELEASE = "usr/lib/os-release"
_POM = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")
_ORGANISATION = re.compile(r"([a-z][\w-]*(?:\.[\w-]+)+)_")  # as jars of the cache folder are named
_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.+-]*)")
_LONGEST_LICENSE = 60  # characters; some distributions have the whole text there
_NAMESPACE = uuid.UUID("6b0f3a1c-6f0e-4c2f-9d55-2f6f2f0f7c11")


def bill_of(image: ImageArchive, name: str, version: str, made_at: datetime | None) -> Bom:
    """Everything in the image that has a name and a version. The same image has the same bill."""
    files = image.files(_told)
    subject = Component(name=name, version=version, type=ComponentType.CONTAINER, bom_ref="image")
    if image.digest:
        subject.purl = PackageURL("oci", None, name, image.digest, {"tag": version})
    bom = Bom(metadata=BomMetaData(component=subject, timestamp=made_at))
    bom.serial_number = uuid.uuid5(_NAMESPACE, image.digest or f"{name}@{version}")
    bom.components.update([*components(files), *_interpreter(image)])
    bom.register_dependency(subject, bom.components)
    return bom


def _interpreter(image: ImageArchive) -> Iterator[Component]:
    """The official base image's Python, which is no package; its version stands in the environment."""
    given = dict(each.split("=", 1) for each in image.config.get("config", {}).get("Env") or ())
    if version := given.get("PYTHON_VERSION"):
        yield _component("python", version, PackageURL("generic", None, "python", version))


def as_json(bom: Bom) -> str:
    """The document, as CycloneDX 1.6 has it."""
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1) + "\n"


def components(files: Mapping[str, bytes]) -> Iterator[Component]:
    """One for each distribution, package and jar; a jar that lies in two places is one."""
    distro = _distribution(files.get(_RELEASE, b""))
    found: dict[str, Component] = {}
    for path, content in sorted(files.items()):
        for each in _of_file(path, content, distro):
            found.setdefault(str(each.bom_ref), each)
    yield from found.values()


def _told(path: str) -> bool:
    """Whether a file says what is installed."""
    return path in (_DPKG, _RELEASE) or path.endswith(".jar") or _METADATA.fullmatch(path) is not None


def _of_file(path: str, content: bytes, distro: str) -> Iterable[Component]:
    if path == _DPKG:
        return _debian(content, distro)
    if path.endswith(".jar"):
        return [_jar(PurePosixPath(path).stem, content)]
    return [_python(content)] if _METADATA.fullmatch(path) else []


def _python(content: bytes) -> Component:
    headers = BytesHeaderParser().parsebytes(content)
    name, version = str(headers["Name"]), str(headers["Version"])
    said = str(headers.get("License-Expression") or headers.get("License") or "").strip()
    short = re.sub(r"[-_.]+", "-", name).lower()
    return _component(name, version, PackageURL("pypi", None, short, version), said)


def _debian(content: bytes, distro: str) -> Iterator[Component]:
    for entry in content.decode(errors="replace").split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Architecture|Status): (.*)$", entry, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            qualifiers = {"arch": fields["Architecture"], "distro": distro}
            url = PackageURL("deb", "debian", fields["Package"], fields["Version"], qualifiers)
            yield _component(fields["Package"], fields["Version"], url)


def _jar(stem: str, content: bytes) -> Component:
    """By its own pom.properties; a jar may have those of others that it has swallowed."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as jar:
            poms = {match[2]: match[1] for name in jar.namelist() if (match := _POM.fullmatch(name))}
    except zipfile.BadZipFile:
        poms = {}
    organisation = _ORGANISATION.match(stem)
    rest = stem if organisation is None else stem[organisation.end() :]
    for artifact, group in sorted(poms.items(), key=lambda pom: -len(pom[0])):
        if rest.startswith(f"{artifact}-"):
            version = rest.removeprefix(f"{artifact}-")
            return _component(artifact, version, PackageURL("maven", group, artifact, version))
    named = _JAR.fullmatch(rest)
    name, version = (named["name"], named["version"]) if named else (rest, "")
    if organisation is not None:
        return _component(name, version, PackageURL("maven", organisation[1], name, version or None))
    return _component(name, version, PackageURL("generic", None, name, version or None, {"file_name": f"{stem}.jar"}))


def _component(name: str, version: str, url: PackageURL, said: str = "") -> Component:
    licenses = [DisjunctiveLicense(name=said)] if said and len(said) <= _LONGEST_LICENSE and "\n" not in said else []
    return Component(
        name=name,
        version=version or None,
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=url.to_string(),
        licenses=licenses,
    )


def _distribution(release: bytes) -> str:
    found = re.search(r'^VERSION_CODENAME="?(\w+)', release.decode(errors="replace"), re.MULTILINE)
    return found[1] if found else "unknown"
