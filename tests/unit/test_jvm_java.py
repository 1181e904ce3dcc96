"""Which Java is taken, and what is said about those that are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.java import candidates, find_java, java_home, probe

FULL = ("java.base@17.0.15", "java.logging@17.0.15", "jdk.incubator.vector@17.0.15")


@pytest.fixture(autouse=True)
def fresh_probes():
    probe.cache_clear()
    yield
    probe.cache_clear()


def a_java(home: Path, modules: tuple[str, ...] = FULL, exit_code: int = 0, says_home: Path | None = None) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    listing = "\n".join(modules)
    java.write_text(
        f"#!/bin/sh\ncat <<EOF\n{listing}\nEOF\necho '    java.home = {says_home or home}' >&2\nexit {exit_code}\n"
    )
    java.chmod(0o755)
    return java


def environment(home: Path | None, path: Path) -> dict[str, str]:
    return {"PATH": str(path)} | ({"JAVA_HOME": str(home)} if home else {})


def test_java_home_is_taken_before_path(tmp_path):
    first = a_java(tmp_path / "home")
    second = a_java(tmp_path / "other")
    assert find_java(environment(tmp_path / "home", second.parent)) == first


def test_without_java_home_the_java_on_path_is_taken(tmp_path):
    java = a_java(tmp_path / "other")
    assert find_java(environment(None, java.parent)) == java


def test_an_unfit_java_home_is_passed_over_with_a_warning(tmp_path, caplog):
    a_java(tmp_path / "old", ("java.base@11.0.2", "jdk.incubator.vector@11.0.2"))
    java = a_java(tmp_path / "good")
    assert find_java(environment(tmp_path / "old", java.parent)) == java
    assert "is Java 11" in caplog.text
    assert "JAVA_HOME" in caplog.text


def test_a_script_on_path_leads_to_the_runtime_behind_it(tmp_path):
    real = a_java(tmp_path / "real")
    shim = a_java(tmp_path / "shims", says_home=tmp_path / "real")
    found = find_java(environment(None, shim.parent))
    assert found == real
    assert java_home(found) == tmp_path / "real"


@pytest.mark.parametrize(
    ("modules", "exit_code", "reason"),
    [
        (("java.base@21.0.1", "jdk.incubator.vector@21.0.1"), 0, ""),
        (("java.base@22", "jdk.incubator.vector@22"), 0, "is Java 22"),
        (("java.base@17.0.15", "java.logging@17.0.15"), 0, "a cut-down runtime"),
        ((), 1, "older than Java 9"),
    ],
)
def test_only_a_full_java_17_or_21_will_do(tmp_path, modules, exit_code, reason):
    found = probe(a_java(tmp_path / "java", modules, exit_code))
    assert (found.home is not None) == (not reason)
    assert reason in found.refusal


def test_with_no_fit_java_the_error_lists_what_was_found_and_what_to_install(tmp_path, monkeypatch):
    old = a_java(tmp_path / "old", ("java.base@11.0.2",))
    environ = environment(tmp_path / "nowhere", old.parent)
    only_these = list(candidates(environ, distribution=tmp_path / "none"))
    monkeypatch.setattr("streams_runtime.jvm.java.candidates", lambda _: iter(only_these))
    with pytest.raises(EnvironmentException) as caught:
        find_java(environ)
    text = str(caught.value)
    assert f"{tmp_path}/nowhere/bin/java (JAVA_HOME): no such file" in text
    assert f"{old} (PATH): is Java 11" in text
    assert "apt-get install openjdk-17-jre-headless" in text


def test_the_distributions_folder_is_looked_at_last(tmp_path):
    on_path = a_java(tmp_path / "path")
    packaged = a_java(tmp_path / "jvm" / "java-17")
    found = candidates(environment(None, on_path.parent), distribution=tmp_path / "jvm")
    assert [each.executable for each in found] == [on_path, packaged]


def test_a_file_that_is_no_program_is_refused(tmp_path):
    java = tmp_path / "java"
    java.write_bytes(os.urandom(64))
    java.chmod(0o755)
    assert "does not run" in probe(java).refusal
