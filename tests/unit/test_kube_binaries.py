"""Programs of a cluster come from the folder that is given, then PATH, then a build that is never half there."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from pathlib import Path

import kube_binaries
import pytest

from streams_runtime.errors import EnvironmentException

NAME = "kube-apiserver"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing but three empty folders."""
    for name in ("assets", "path", "cache"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv(kube_binaries.ASSETS_VARIABLE, str(tmp_path / "assets"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("STREAMSAPP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kube_binaries, "_SYSTEM_FOLDERS", ())
    return tmp_path


def put(folder: Path, name: str = NAME) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


def go_that(places: Path, does: str) -> None:
    put(places / "path", "nice").write_text('#!/bin/sh\nexec "$@"\n')
    put(places / "path", "go").write_text(f"#!/bin/sh\n{does}\n")


def built(places: Path) -> list[str]:
    return [path.name for path in (places / "cache" / "kube").iterdir() if path.is_dir()]


def test_the_folder_that_is_given_comes_first_then_path_then_the_cache(places: Path):
    in_cache = put(kube_binaries._place(kube_binaries.KUBERNETES))
    assert kube_binaries.find(NAME) == in_cache
    on_path = put(places / "path")
    assert kube_binaries.find(NAME) == on_path
    given = put(places / "assets")
    assert kube_binaries.find(NAME) == given


def test_what_the_given_folder_lacks_is_looked_for_elsewhere(places: Path):
    put(places / "assets", "kube-scheduler")
    assert kube_binaries.find(NAME) is None
    assert kube_binaries.find("kube-scheduler") is not None


def test_without_go_the_reason_names_what_to_set(places: Path):
    reason = kube_binaries.lacking(NAME)
    assert reason is not None
    assert "no kube-apiserver in KUBEBUILDER_ASSETS" in reason
    assert "no Go on PATH" in reason
    with pytest.raises(EnvironmentException, match="let KUBEBUILDER_ASSETS name a folder that has it"):
        kube_binaries.program(NAME)


def test_a_build_that_fails_says_why_and_is_not_taken_for_one(places: Path):
    go_that(places, "echo no network >&2; exit 1")
    with pytest.raises(EnvironmentException, match="no network"):
        kube_binaries.program(NAME)
    assert kube_binaries.find(NAME) is None


def test_a_build_happens_once(places: Path):
    count = places / "count"
    # go build -trimpath -ldflags=… -o FOLDER/ …
    go_that(places, f'echo built >> "{count}"; /bin/cp /bin/sh "${{5}}{NAME}"')
    first = kube_binaries.program(NAME)
    assert kube_binaries.program(NAME) == first
    assert count.read_text().splitlines() == ["built"]
    assert built(places) == [first.parent.name]


def test_another_go_mod_is_another_build(places: Path, tmp_path: Path):
    keys = set()
    for text in ("one", "two"):
        (tmp_path / "go.mod").write_text(text)
        (tmp_path / "go.sum").write_text("")
        keys.add(kube_binaries.GoModule(tmp_path, {"x": "example.org/x"}).key)
    assert len(keys) == 2


def test_what_the_compiler_is_told_makes_another_build(tmp_path: Path):
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_text("")
    modules = [kube_binaries.GoModule(tmp_path, {"x": "x"}, compiling=each) for each in ((), ("-N",), ("-N", "-l"))]
    assert len({each.key for each in modules}) == 3


def test_the_compiler_is_told_for_every_package(places: Path, monkeypatch: pytest.MonkeyPatch):
    told = places / "told"
    go_that(places, f'echo "$@" > "{told}"; exit 1')
    unoptimised = dataclasses.replace(kube_binaries.S3_SERVER, folder=places)
    (places / "go.mod").write_text("")
    (places / "go.sum").write_text("")
    monkeypatch.setattr(kube_binaries, "_MODULES", (unoptimised,))
    with pytest.raises(EnvironmentException):
        kube_binaries.program("s3server")
    assert " -gcflags=all=-N -l -dwarf=false -o " in told.read_text()


def test_what_is_built_says_the_version_that_go_mod_names():
    linking = kube_binaries.KUBERNETES.linking
    required = re.search(r"k8s\.io/kubernetes (v1\.\S+)", (kube_binaries.KUBERNETES.folder / "go.mod").read_text())
    assert required is not None
    assert f"-X k8s.io/component-base/version.gitVersion={required[1]} " in linking


def test_installing_without_root_says_what_is_missing(places: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kube_binaries, "_no_apt", lambda: "apt-get needs root")
    with pytest.raises(EnvironmentException, match="etcd-server is not installed, and apt-get needs root"):
        kube_binaries.program("etcd")


def test_a_failing_installation_repeats_apts_words(places: Path, monkeypatch: pytest.MonkeyPatch):
    def fails(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 100, "", "E: Unable to locate package")

    monkeypatch.setattr(kube_binaries, "_no_apt", lambda: None)
    monkeypatch.setattr(kube_binaries.subprocess, "run", fails)
    with pytest.raises(EnvironmentException, match="Unable to locate package"):
        kube_binaries.program("etcd")
