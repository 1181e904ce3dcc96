"""`make images`: both images as OCI archives without Docker, each with its bill of materials, in dist/images.

Environment: SOURCE (the address of the sources, for the labels), SOURCE_DATE_EPOCH (seconds since 1970; else the time
of the last commit), PULL=1 (from the official base image; else from a stand-in of Debian packages), TARGETS.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from image_archive import ImageArchive
from image_bill import as_json, bill_of
from kube_images import PROJECT, TARGETS, oci_archive

from streams_runtime.errors import EnvironmentException

FOLDER = PROJECT / "dist" / "images"


def project_version() -> str:
    """The version of the project, which images and chart have too."""
    return str(tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def labels(environment: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """Arguments of the Dockerfile, and the time of the build in seconds since 1970.

    Raises EnvironmentException for a SOURCE_DATE_EPOCH that is no number.
    """
    at = environment.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct")
    if not at.isdigit():
        raise EnvironmentException(
            f"SOURCE_DATE_EPOCH is {at!r}; give seconds since 1970, or build in a clone with commits"
        )
    changed = "-modified" if _git("status", "--porcelain") else ""
    revision = _git("rev-parse", "HEAD")
    given = {
        "VERSION": project_version(),
        "REVISION": revision and revision + changed,
        "CREATED": datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z"),
        "SOURCE": environment.get("SOURCE", ""),
    }
    return {name: value for name, value in given.items() if value}, int(at)


def make(target: str, folder: Path, environment: Mapping[str, str]) -> ImageArchive:
    """Build one image and write its archive, its bill and the digest of both. Raises what `oci_archive` raises."""
    given, at = labels(environment)
    name, version = f"streams-{target}", given["VERSION"]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{version}.tar"
    oci_archive(target, f"localhost/{name}:{version}", file, given, environment.get("PULL") == "1", at)
    image = ImageArchive.of(file)
    bill = as_json(bill_of(image, name, version, datetime.fromtimestamp(at, UTC)))
    file.with_suffix(".cdx.json").write_text(bill, encoding="utf-8")
    sums = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in _written(file)]
    file.with_suffix(".sha256").write_text("".join(sums), encoding="utf-8")
    return image


def _written(file: Path) -> tuple[Path, Path]:
    return file, file.with_suffix(".cdx.json")


def _git(*arguments: str) -> str:
    """What git says of the project; empty outside of a clone."""
    done = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def main() -> None:
    """Build what TARGETS names, and say what to give to the chart."""
    wanted = os.environ.get("TARGETS", "").split() or TARGETS
    if unknown := set(wanted) - set(TARGETS):
        sys.exit(f"TARGETS: there is no {', '.join(sorted(unknown))}; give some of {', '.join(TARGETS)}")
    if os.environ.get("PULL") != "1":
        print("base: a stand-in of Debian's packages; PULL=1 takes the official Python image", flush=True)
    for target in wanted:
        try:
            image = make(target, FOLDER, os.environ)
        except EnvironmentException as error:
            sys.exit(f"make images: {error}")
        value = "image.digest" if target == "operator" else "runtime.image.digest"
        print(f"{image.file.relative_to(PROJECT)}: {value}={image.digest}", flush=True)


if __name__ == "__main__":
    main()
