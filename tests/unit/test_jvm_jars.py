"""The jars' cache: fetched once, whole or not at all, the same for all who ask at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.jars import BROKER, SPARK, JarSet, cache_folder, cached

WANTED = JarSet("things", ("org.example:thing:1.0",), ("org.example:other",))


class Resolver:
    """Writes two jars where a network would be asked, and counts."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.calls: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self.failure = failure

    def __call__(self, coordinates: tuple[str, ...], exclusions: tuple[str, ...], work: Path, into: Path) -> None:
        self.calls.append((coordinates, exclusions))
        into.mkdir(parents=True)
        (into / "a.jar").write_bytes(b"first")
        if self.failure:
            raise self.failure
        (into / "b.jar").write_bytes(b"second")


def test_a_set_is_fetched_once_and_then_comes_from_the_cache(tmp_path):
    resolver = Resolver()
    first = cached(WANTED, tmp_path, resolver)
    assert cached(WANTED, tmp_path, resolver) == first
    assert resolver.calls == [(("org.example:thing:1.0",), ("org.example:other",))]
    assert [jar.read_bytes() for jar in first] == [b"first", b"second"]


def test_a_fetch_that_broke_off_leaves_nothing_that_is_taken_for_a_set(tmp_path):
    with pytest.raises(EnvironmentException, match="no network"):
        cached(WANTED, tmp_path, Resolver(EnvironmentException("no network")))
    resolver = Resolver()
    assert len(cached(WANTED, tmp_path, resolver)) == 2
    assert len(resolver.calls) == 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda jar: jar.write_bytes(b"fir")], ids=["gone", "cut"])
def test_a_set_that_lost_part_of_itself_is_fetched_again(tmp_path, damage):
    damage(cached(WANTED, tmp_path, Resolver())[0])
    resolver = Resolver()
    assert [jar.read_bytes() for jar in cached(WANTED, tmp_path, resolver)] == [b"first", b"second"]
    assert len(resolver.calls) == 1


def test_all_who_ask_at_once_get_the_set_of_one_fetch(tmp_path):
    resolver = Resolver()
    second_fetch = threading.Event()

    def slow(coordinates: tuple[str, ...], exclusions: tuple[str, ...], work: Path, into: Path) -> None:
        if resolver.calls:
            second_fetch.set()
        resolver(coordinates, exclusions, work, into)
        # Time for the others to begin a fetch of their own, were they free to.
        second_fetch.wait(0.2)

    gate = threading.Barrier(4)

    def ask() -> list[Path]:
        gate.wait()
        return cached(WANTED, tmp_path, slow)

    with ThreadPoolExecutor(4) as pool:
        answers = [future.result() for future in [pool.submit(ask) for _ in range(4)]]
    assert len(resolver.calls) == 1
    assert all(answer == answers[0] for answer in answers)


def test_another_version_has_another_folder():
    assert JarSet("things", ("org.example:thing:1.1",)).folder_name != WANTED.folder_name
    assert JarSet("things", WANTED.coordinates, ()).folder_name != WANTED.folder_name


def test_the_brokers_jars_and_sparks_are_kept_apart():
    assert BROKER.folder_name != SPARK.folder_name
    assert not set(BROKER.coordinates) & set(SPARK.coordinates)


def test_a_cache_folder_that_can_not_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentException, match="STREAMSAPP_CACHE") as caught:
        cached(WANTED, tmp_path / "file", Resolver())
    assert str(tmp_path / "file") in str(caught.value)


def test_the_cache_folder_is_the_one_that_is_named_then_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("STREAMSAPP_CACHE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder() == tmp_path
    monkeypatch.delenv("STREAMSAPP_CACHE")
    assert cache_folder() == Path("/xdg/streams-operator")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("/home/someone/.cache/streams-operator")
