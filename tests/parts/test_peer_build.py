"""What several processes of a run need from the cache is made once, and whole."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from bench_peer_build import whole


def test_of_several_that_ask_at_once_one_makes_it_and_the_others_wait(tmp_path: Path) -> None:
    folder, begun, go_on, made = tmp_path / "libs", threading.Event(), threading.Event(), list[Path]()

    def fill(target: Path) -> None:
        made.append(target)
        begun.set()
        assert go_on.wait(30)
        (target / "a.jar").touch()

    def ask() -> None:
        whole(folder, fill)
        found.append(sorted(each.name for each in folder.iterdir()))

    found: list[list[str]] = []
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for each in threads:
        each.start()
    assert begun.wait(30)
    assert not folder.exists()
    go_on.set()
    for each in threads:
        each.join(30)
    assert found == [["a.jar"]] * 3
    assert len(made) == 1


def test_what_failed_leaves_nothing_and_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "classes"

    def fail(target: Path) -> None:
        (target / "half.class").touch()
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        whole(folder, fail)
    assert not folder.exists()
    whole(folder, lambda target: (target / "whole.class").touch())
    assert [each.name for each in folder.iterdir()] == ["whole.class"]
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == ["classes"]
