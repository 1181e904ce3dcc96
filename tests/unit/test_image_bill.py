"""Bills of materials of images: what they have of an archive's layers, and what images say of themselves."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from image_archive import ImageArchive
from image_bill import as_json, bill_of
from release_images import labels, project_version

from streams_runtime.errors import EnvironmentException

ROOT = Path(__file__).parents[2]
SITE = "opt/streams/venv/lib/python3.11/site-packages"
DPKG = """Package: libssl3
Status: install ok installed
Architecture: amd64
Version: 3.0.17-1
Description: a library
 of several lines

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""


def metadata(name: str, version: str, *more: str) -> str:
    return "\n".join([f"Name: {name}", f"Version: {version}", *more, "", "Name: not a header"])


def jar(*poms: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for pom in poms:
            archive.writestr(f"META-INF/maven/{pom}/pom.properties", "")
    return content.getvalue()


def packed(files: Mapping[str, str | bytes], mode: str = "w") -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:
        for name, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def docker(folder: Path, *layers: Mapping[str, str | bytes], config: Mapping[str, Any] | None = None) -> ImageArchive:
    names = [f"{number}.tar" for number in range(len(layers))]
    parts = {name: packed(layer) for name, layer in zip(names, layers, strict=True)}
    manifest = [{"Config": "c.json", "Layers": names}]
    file = folder / "image.tar"
    file.write_bytes(
        packed({**parts, "c.json": json.dumps(config or {"config": {}}), "manifest.json": json.dumps(manifest)})
    )
    return ImageArchive.of(file)


def oci(folder: Path, *layers: Mapping[str, str | bytes], config: Mapping[str, Any] | None = None) -> ImageArchive:
    blobs: dict[str, bytes] = {}

    def blob(data: bytes) -> dict[str, str]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"digest": f"sha256:{digest}"}

    manifest = {
        "config": blob(json.dumps(config or {"config": {}}).encode()),
        "layers": [blob(packed(layer, "w:gz")) for layer in layers],
        "annotations": {"org.opencontainers.image.version": "1"},
    }
    index = {"manifests": [blob(json.dumps(manifest).encode())]}
    file = folder / "image.oci.tar"
    file.write_bytes(packed({**blobs, "index.json": json.dumps(index)}))
    return ImageArchive.of(file)


def urls(image: ImageArchive) -> list[str]:
    return sorted(str(each.purl) for each in bill_of(image, "streams", "1", None).components)


LAYERS: Sequence[Mapping[str, str | bytes]] = (
    {
        "var/lib/dpkg/status": DPKG,
        "usr/lib/os-release": "VERSION_CODENAME=bookworm\n",
        f"{SITE}/Old_Name-1.dist-info/METADATA": metadata("Old_Name", "1"),
        f"{SITE}/kept-2.dist-info/METADATA": metadata("kept", "2", "License-Expression: MIT"),
        f"{SITE}/away/x-1.dist-info/METADATA": metadata("x", "1"),
    },
    {
        f"{SITE}/.wh.Old_Name-1.dist-info": "",
        f"{SITE}/away/.wh..wh..opq": "",
        f"./{SITE}/Old_Name-3.dist-info/METADATA": metadata("Old_Name", "3"),
        f"{SITE}/pyspark/jars/netty-all-4.1.jar": jar("io.netty/netty-all", "io.netty/netty"),
        f"{SITE}/pyspark/jars/named-by-file-2.1.0-M5.jar": jar("other/swallowed"),
        "opt/streams/cache/jars/spark-0/org.apache.kafka_kafka-clients-4.4.0.jar": jar(),
        "opt/broken.jar": b"no zip",
    },
)
EXPECTED = [
    "pkg:deb/debian/libssl3@3.0.17-1?arch=amd64&distro=bookworm",
    "pkg:generic/broken?file_name=broken.jar",
    "pkg:generic/named-by-file@2.1.0-M5?file_name=named-by-file-2.1.0-M5.jar",
    "pkg:maven/io.netty/netty-all@4.1",
    "pkg:maven/org.apache.kafka/kafka-clients@4.4.0",
    "pkg:pypi/kept@2",
    "pkg:pypi/old-name@3",
]


@pytest.mark.parametrize("pack", [docker, oci])
def test_a_bill_has_what_a_container_sees_and_nothing_that_a_later_layer_has_removed(pack: Any, tmp_path: Path):
    assert urls(pack(tmp_path, *LAYERS)) == EXPECTED


def test_a_bill_names_the_image_by_its_digest_and_is_the_same_each_time(tmp_path: Path):
    at = datetime(2027, 1, 15, tzinfo=UTC)
    image = oci(tmp_path, *LAYERS)
    assert image.digest.startswith("sha256:")
    assert image.annotations == {"org.opencontainers.image.version": "1"}
    texts = {as_json(bill_of(image, "streams-operator", "0.2.0", at)) for _ in range(3)}
    (document,) = map(json.loads, texts)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["timestamp"] == "2027-01-15T00:00:00+00:00"
    subject = document["metadata"]["component"]
    assert (subject["name"], subject["version"], subject["type"]) == ("streams-operator", "0.2.0", "container")
    assert image.digest.replace(":", "%3A") in subject["purl"].replace("sha256:", "sha256%3A")
    licensed = {each["name"]: each["licenses"] for each in document["components"] if "licenses" in each}
    assert licensed == {"kept": [{"license": {"name": "MIT"}}]}
    (depends,) = (each["dependsOn"] for each in document["dependencies"] if "dependsOn" in each)
    assert sorted(depends) == EXPECTED


def test_the_official_images_python_is_on_the_bill(tmp_path: Path):
    config = {"config": {"Env": ["PATH=/bin", "PYTHON_VERSION=3.11.14"], "Labels": {"a": "b"}}}
    image = docker(tmp_path, config=config)
    assert urls(image) == ["pkg:generic/python@3.11.14"]
    assert image.labels == {"a": "b"}


def test_both_images_say_which_version_they_are():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert set(re.findall(r"ARG VERSION=(\S+)", text)) == {project_version()}
    stages = text.split("\nFROM ")[-2:]
    for stage, name in zip(stages, ("streams-operator", "streams-runtime"), strict=True):
        assert f'org.opencontainers.image.title="{name}"' in stage
        labelled = set(re.findall(r"org\.opencontainers\.image\.([a-z.]+)=\$([A-Z_]+)", stage))
        assert {argument for _, argument in labelled} == set(
            re.findall(r"([A-Z_]+)=", stage.split("ARG VERSION")[1].split("\n")[0])
        ) | {"VERSION"}
        assert all(argument.lower().replace("_", ".") == label for label, argument in labelled)


def test_labels_are_the_projects_and_the_commits():
    given, at = labels({"SOURCE_DATE_EPOCH": "1800000000", "SOURCE": "https://git.example.org/streams"})
    assert at == 1_800_000_000
    assert given["VERSION"] == project_version()
    assert given["CREATED"] == "2027-01-15T08:00:00Z"
    assert given["SOURCE"] == "https://git.example.org/streams"
    assert "SOURCE" not in labels({"SOURCE_DATE_EPOCH": "1"})[0]
    with pytest.raises(EnvironmentException, match="SOURCE_DATE_EPOCH is 'yesterday'"):
        labels({"SOURCE_DATE_EPOCH": "yesterday"})
