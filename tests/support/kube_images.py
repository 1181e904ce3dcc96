"""The images that pods of tests are made from, built from the Dockerfile without an engine or a registry."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kube_binaries import program
from kube_node_config import PAUSE_IMAGE
from kube_process import temporary_folder

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.jars import BROKER, SPARK, broker_jars, cache_folder, only_one, spark_jars

BASE_IMAGE = "docker.io/library/python:3.11-slim-bookworm"
TARGETS = ("operator", "runtime")

PROJECT = Path(__file__).parent.parent.parent
_PAUSE_SOURCE = PROJECT / "tests" / "e2e" / "pause.c"
_FILES = ("Dockerfile", ".dockerignore", ".requirements.lock", "pyproject.toml", ".ci/requirements_of.py")
_SOURCES = ("operator", "runtime")
_TIMEOUT = 1800.0
_STAND_IN = "localhost/debian-stand-in:bookworm"
"""What an image says that its base is, where that is not the official one."""
_OCI = "org.opencontainers.image"
_MOST_LAYERS = 400
# What the real base image has and a build needs.
_BASE_PACKAGES = "python3,python3-venv,ca-certificates"


def image_name(target: str) -> str:
    """What pods call the image of a target of the Dockerfile."""
    return f"localhost/streams-{target}:tests"


def image_archive(target: str) -> Path:
    """The image of a target of the Dockerfile, as a file; built when Dockerfile, lock or sources have changed.

    Raises EnvironmentException with the last lines of the step that failed.
    """
    archive = _archive(target, _key())
    with only_one(_folder() / "build"):
        if not archive.is_file():
            with _store() as store:
                _make_base(store)
                _build(store, target, image_name(target))
                _export(store, image_name(target), archive)
    return archive


def pause_archive() -> Path:
    """The image of the process that holds a pod's namespaces open, as a file."""
    archive = _archive("pause", hashlib.sha256(_PAUSE_SOURCE.read_bytes()).hexdigest()[:16])
    with only_one(_folder() / "build"):
        if not archive.is_file():
            with temporary_folder("pause") as folder, _store() as store:
                pause = folder / "pause"
                _run([program("gcc"), "-static", "-Os", "-s", "-o", pause, _PAUSE_SOURCE])
                container = _run([*store, "from", "scratch"]).strip()
                _run([*store, "copy", container, pause, "/pause"])
                _run([*store, "config", "--entrypoint", '["/pause"]', container])
                _run([*store, "commit", "--rm", container, PAUSE_IMAGE])
                _export(store, PAUSE_IMAGE, archive)
    return archive


def oci_archive(target: str, image: str, archive: Path, labels: Mapping[str, str], pull: bool, made_at: int) -> None:
    """Build a target under a name, and write it as an OCI archive: what a registry takes.

    `labels` are arguments of the Dockerfile. `pull`: from the official base image, which has to be reachable; else from
    the stand-in that tests use. `made_at`: seconds since 1970, the time of the image and of its files.
    Raises EnvironmentException with the last lines of the step that failed.
    """
    with only_one(_folder() / "build"), _store() as store:
        if pull:
            _pull_base(store)
        else:
            _make_base(store)
        base = _run([*store, "inspect", "--type=image", "--format={{.FromImageDigest}}", BASE_IMAGE]).strip()
        given = {**labels, "BASE_DIGEST": base, "BASE_NAME": BASE_IMAGE if pull else _STAND_IN}
        arguments = [f"--build-arg={name}={value}" for name, value in given.items()]
        annotations = [f"--annotation={_OCI}.{name.lower().replace('_', '.')}={value}" for name, value in given.items()]
        _build(store, target, image, [*arguments, *annotations, f"--timestamp={made_at}"])
        archive.unlink(missing_ok=True)
        _run([*store, "push", "--quiet", image, f"oci-archive:{archive}"])
        _run([*store, "rmi", image])


def _folder() -> Path:
    return cache_folder() / "kube" / "images"


def _archive(name: str, key: str) -> Path:
    return _folder() / f"{name}-{key}.tar"


@functools.cache
def _key() -> str:
    # Once a run: a file that is saved while tests run belongs to the next one.
    digest = hashlib.sha256()
    sources = sorted(path for name in _SOURCES for path in (PROJECT / name).rglob("*") if _belongs(path))
    for path in (*(PROJECT / name for name in _FILES), *sources):
        digest.update(f"{path.relative_to(PROJECT)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    digest.update(f"{SPARK.folder_name} {BROKER.folder_name}".encode())
    return digest.hexdigest()[:16]


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and path.suffix != ".md"


@contextmanager
def _store() -> Iterator[list[str | Path]]:
    """buildah with layers of its own, kept between runs; its mounts go with each of its processes."""
    layers = _folder() / "layers"
    with temporary_folder("buildah") as state:
        store: list[str | Path] = [program("unshare"), "--mount", program("buildah"), "--storage-driver=overlay"]
        store += [f"--root={layers}", f"--runroot={state}"]
        if layers.is_dir() and len(_run([*store, "images", "--all", "--quiet"]).split()) > _MOST_LAYERS:
            # Layers that no build uses any more; those that are still used cost minutes, once.
            shutil.rmtree(layers)
        try:
            yield store
        finally:
            _run([*store, "rm", "--all"])


def _pull_base(store: Sequence[str | Path]) -> None:
    """The official image, from its registry: one that is here already may be the stand-in, which has its name."""
    try:
        _run([*store, "pull", "--quiet", "--policy=always", BASE_IMAGE])
    except EnvironmentException as error:
        remedy = "Let this machine reach its registry, or leave PULL out for a stand-in of Debian's packages"
        raise EnvironmentException(f"the official base image can't be had: {error}. {remedy}") from error


def _make_base(store: Sequence[str | Path]) -> None:
    """Let a stand-in from Debian's own packages have the official image's name, whichever image has it now."""
    if not _run([*store, "images", "--quiet", "--filter", f"reference={_STAND_IN}"]).strip():
        _make_stand_in(store)
    _run([*store, "tag", _STAND_IN, BASE_IMAGE])


def _make_stand_in(store: Sequence[str | Path]) -> None:
    with temporary_folder("base") as folder:
        root, packed = folder / "root", folder / "root.tar"
        _run([program("debootstrap"), "--variant=minbase", f"--include={_BASE_PACKAGES}", "bookworm", root])
        for each in (root / "var/cache/apt/archives").glob("*.deb"):
            each.unlink()
        for name in ("python", "python3"):
            (root / "usr/local/bin" / name).symlink_to("/usr/bin/python3")
        with tarfile.open(packed, "w") as archive:
            archive.add(root, "/")
        container = _run([*store, "from", "scratch"]).strip()
        _run([*store, "add", container, packed, "/"])
        _run([*store, "commit", "--rm", container, _STAND_IN])


def _build(store: Sequence[str | Path], target: str, image: str, options: Sequence[str] = ()) -> None:
    with temporary_folder("image") as context:
        for name in (*_FILES, "README.md"):
            (context / name).parent.mkdir(exist_ok=True)
            shutil.copy(PROJECT / name, context / name)
        for name in _SOURCES:
            shutil.copytree(PROJECT / name, context / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(_wheelhouse(), context / "wheelhouse", copy_function=_link)
        folders = [jars[0].parent for jars in (spark_jars(), broker_jars())]
        # A layer is known by its command, and not by what that finds in the context: other jars need another name.
        jars_name = "-".join(["jars", *(each.name for each in folders)])
        for each in folders:
            shutil.copytree(each, context / jars_name / each.name, copy_function=_link)
        command = [*store, "bud", "--isolation=chroot", "--layers", "--pull-never", f"--target={target}"]
        command += ["--build-arg=WHEELHOUSE=wheelhouse", f"--build-arg=JARS={jars_name}", f"--tag={image}", *options]
        _run([*command, context])


def _wheelhouse() -> Path:
    """Wheels and source packages of the lock, fetched by this machine's own pip: a build step has no index."""
    lock = (PROJECT / ".requirements.lock").read_bytes()
    place = _folder() / f"wheelhouse-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not place.is_dir():
        part = place.with_name(place.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        with temporary_folder("requirements") as folder:
            requirements = folder / "requirements.txt"
            parts = [sys.executable, PROJECT / ".ci" / "requirements_of.py", "build", *TARGETS]
            requirements.write_text(_run(parts))
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            command += ["--require-hashes", "--no-deps", "--no-build-isolation", f"--dest={part}"]
            _run([*command, "--requirement", requirements])
        for old in _folder().glob("wheelhouse-*"):
            if old != part:
                shutil.rmtree(old)
        part.rename(place)
    return place


def _link(source: str, target: str) -> None:
    # Hundreds of megabytes; a copy is only for a context on another file system.
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def _export(store: Sequence[str | Path], image: str, archive: Path) -> None:
    """Write the archive; it appears by one rename, and older ones than the last go: that may be in use."""
    part = archive.with_suffix(".part")
    part.unlink(missing_ok=True)
    # Uncompressed, unlike an OCI archive: it stays on this machine, and compressing takes longer than building.
    _run([*store, "push", "--quiet", image, f"docker-archive:{part}:{image}"])
    others = archive.parent.glob(f"{archive.name.rpartition('-')[0]}-*.tar")
    for old in sorted(others, key=lambda path: path.stat().st_mtime)[:-1]:
        old.unlink()
    part.rename(archive)


def _run(command: Sequence[str | Path]) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT, check=False
    )
    if done.returncode != 0:
        words = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise EnvironmentException(f"`{' '.join(map(str, command))}` ended with {done.returncode}:\n{words}")
    return done.stdout
