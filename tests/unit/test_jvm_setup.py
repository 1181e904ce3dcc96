"""Installing a Java: only as root with apt, and never in silence."""

from __future__ import annotations

import subprocess

import pytest

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm import machine_setup

MISSING = EnvironmentException("no Java; install openjdk-17-jre-headless")


class Apt:
    """Answers as apt-get would, by the package that is asked for."""

    def __init__(self, *available: str) -> None:
        self.available = available
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        good = command[1] == "update" or command[-1] in self.available
        return subprocess.CompletedProcess(command, 0 if good else 100, "", "" if good else "E: Unable to locate it")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    def make(*, root: bool = True, apt: str | None = "/usr/bin/apt-get") -> None:
        monkeypatch.setattr(machine_setup.os, "geteuid", lambda: 0 if root else 1000)
        monkeypatch.setattr(machine_setup.shutil, "which", lambda _: apt)

    return make


@pytest.mark.parametrize("kind", [{"root": False}, {"apt": None}], ids=["not root", "no apt"])
def test_where_it_may_not_install_it_says_what_to_install(machine, kind):
    machine(**kind)
    apt = Apt("openjdk-17-jre-headless")
    with pytest.raises(EnvironmentException, match="install openjdk-17-jre-headless"):
        machine_setup.install_java(MISSING, apt)
    assert apt.commands == []


@pytest.mark.parametrize("package", ["openjdk-17-jre-headless", "openjdk-21-jre-headless"])
def test_as_root_the_java_that_the_distribution_has_is_installed(machine, capsys, package):
    machine()
    apt = Apt(package)
    machine_setup.install_java(MISSING, apt)
    assert apt.commands[0] == ["apt-get", "update"]
    assert apt.commands[-1][-1] == package
    assert package in capsys.readouterr().out


def test_what_apt_said_is_in_the_error_when_nothing_could_be_installed(machine):
    machine()
    with pytest.raises(EnvironmentException, match="Unable to locate it"):
        machine_setup.install_java(MISSING, Apt())


def test_set_up_without_java_ends_with_the_words_and_an_exit_code(machine, monkeypatch, capsys):
    machine(root=False)

    def no_java():
        raise MISSING

    monkeypatch.setattr(machine_setup, "find_java", no_java)
    assert machine_setup.main() == 1
    assert capsys.readouterr().err.strip() == str(MISSING)
