"""The images of this run: what they say of themselves, and that their bill of materials is what is in them."""

from __future__ import annotations

import json

import pytest
from image_archive import ImageArchive
from image_bill import bill_of
from kube_images import TARGETS, image_archive
from kube_node import Node
from kube_pods import finished, pod
from kube_sources import made_elsewhere
from release_images import project_version

pytestmark = pytest.mark.e2e

LOOKS = """
import importlib.metadata, json, pathlib, re, subprocess
def short(name): return re.sub(r"[-_.]+", "-", name).lower()
# Those that a distribution brings inside of it, as setuptools does, are in the image too.
folders = sorted({str(path.parent) for top in ("opt", "usr") for path in pathlib.Path("/", top).rglob("*.dist-info")})
found = importlib.metadata.distributions(path=folders)
python = sorted({f"{short(each.name)}=={each.version}" for each in found})
imported = {f"{short(each.name)}=={each.version}" for each in importlib.metadata.distributions()}
assert imported and imported <= set(python), imported
query = ["dpkg-query", "--show", "--showformat=${Package}==${Version} ${db:Status-Status}\\\\n"]
printed = subprocess.run(query, capture_output=True, text=True, check=True).stdout
debian = sorted({line.split()[0] for line in printed.splitlines() if line.endswith(" installed")})
found = [path for top in ("opt", "usr") for path in pathlib.Path("/", top).rglob("*.jar")]
jars = sorted({path.name for path in found if not path.is_symlink()})
print(json.dumps({"python": python, "debian": debian, "jars": jars}))
"""

# Images of a cluster that is given were made elsewhere.
if not made_elsewhere():

    @pytest.mark.parametrize("target", TARGETS)
    def test_the_bill_of_an_image_is_what_is_installed_in_it(
        target: str, node: Node, node_namespace: str, operator_image: str, runtime_image: str
    ):
        name = {"operator": operator_image, "runtime": runtime_image}[target]
        node.cluster.apply(pod("looks", node_namespace, name, ["python", "-c", LOOKS]))
        there = json.loads(finished(node.cluster, "looks", node_namespace).splitlines()[-1])
        bill = bill_of(ImageArchive.of(image_archive(target)), target, project_version(), None)
        listed: dict[str, set[str]] = {}
        for each in bill.components:
            listed.setdefault(each.purl.type, set()).add(f"{each.purl.name}=={each.version}")
        assert sorted(listed["pypi"]) == there["python"]
        assert sorted(listed["deb"]) == there["debian"]
        jars = [each for each in bill.components if each.purl.type == "maven" or "file_name" in each.purl.qualifiers]
        unlisted = [each for each in there["jars"] if not any(each.endswith(_file(jar)) for jar in jars)]
        assert (unlisted, len(jars) <= len(there["jars"])) == ([], True)
        assert (target == "runtime") == bool(jars)

    @pytest.mark.parametrize("target", TARGETS)
    def test_an_image_says_what_it_is(target: str, operator_image: str, runtime_image: str):
        labels = ImageArchive.of(image_archive(target)).labels
        assert labels["org.opencontainers.image.title"] == f"streams-{target}"
        assert labels["org.opencontainers.image.version"] == project_version()


def _file(jar: object) -> str:
    version = f"-{jar.version}" if jar.version else ""
    return f"{jar.name}{version}.jar"
