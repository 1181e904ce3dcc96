"""The resolver, really run, against a Maven repository in a folder: no network is needed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.ivy import SETTINGS_VARIABLE, resolve

pytestmark = pytest.mark.integration


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repository"
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="local"/><resolvers>'
        f'<ibiblio name="local" m2compatible="true" root="{root.as_uri()}"/></resolvers></ivysettings>'
    )
    monkeypatch.setenv(SETTINGS_VARIABLE, str(settings))
    return root


def publish(repository: Path, name: str, version: str, needs: tuple[str, ...] = (), scope: str = "runtime") -> None:
    folder = repository / "org" / "example" / name / version
    folder.mkdir(parents=True)
    dependencies = "".join(
        f"<dependency><groupId>org.example</groupId><artifactId>{each}</artifactId><version>1</version>"
        f"<scope>{scope}</scope></dependency>"
        for each in needs
    )
    (folder / f"{name}-{version}.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version><dependencies>{dependencies}</dependencies></project>"
    )
    with zipfile.ZipFile(folder / f"{name}-{version}.jar", "w") as jar:
        jar.writestr("name.txt", name)


def names(folder: Path) -> list[str]:
    return sorted(jar.name for jar in folder.glob("*.jar"))


def test_what_a_jar_needs_to_run_comes_with_it_and_what_is_excluded_does_not(repository, tmp_path):
    publish(repository, "app", "1", needs=("part", "left-out"))
    publish(repository, "part", "1", needs=("only-to-test",), scope="test")
    publish(repository, "left-out", "1")
    publish(repository, "only-to-test", "1")
    resolve(("org.example:app:1",), ("org.example:left-out",), tmp_path / "work", tmp_path / "jars")
    assert names(tmp_path / "jars") == ["org.example_app-1.jar", "org.example_part-1.jar"]


def test_a_jar_that_is_not_there_is_named_and_nothing_is_passed_over(repository, tmp_path):
    publish(repository, "app", "1", needs=("part",))
    with pytest.raises(EnvironmentException, match="part;1: not found"):
        resolve(("org.example:app:1",), (), tmp_path / "work", tmp_path / "jars")


def test_a_jar_that_was_damaged_on_the_way_is_not_taken(repository, tmp_path):
    publish(repository, "app", "1", needs=("part",))
    publish(repository, "part", "1")
    (repository / "org" / "example" / "part" / "1" / "part-1.jar.sha1").write_text("0" * 40)
    with pytest.raises(EnvironmentException, match=r"org\.example#part;1!part\.jar"):
        resolve(("org.example:app:1",), (), tmp_path / "work", tmp_path / "jars")


def test_settings_that_are_not_there_are_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv(SETTINGS_VARIABLE, str(tmp_path / "none.xml"))
    with pytest.raises(EnvironmentException, match=r"STREAMSAPP_IVY_SETTINGS names .*none\.xml"):
        resolve(("org.example:app:1",), (), tmp_path / "work", tmp_path / "jars")
