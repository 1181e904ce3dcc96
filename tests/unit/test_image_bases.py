"""Which base an image is built on, as it also says: the official one where it was just pulled, else the stand-in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import kube_images
import pytest
from kube_images import BASE_IMAGE, oci_archive

from streams_runtime.errors import EnvironmentException

STAND_IN = "localhost/debian-stand-in:bookworm"


class Buildah:
    """Knows which image has which name."""

    def __init__(self, reachable: bool, **images: str) -> None:
        self.reachable = reachable
        self.images = images or {BASE_IMAGE: "stand-in", STAND_IN: "stand-in"}
        self.built: list[tuple[str, str]] = []

    def run(self, command: Sequence[str | Path]) -> str:
        match [str(each) for each in command]:
            case ["buildah", "pull", *options, name]:
                if name not in self.images or "--policy=always" in options:
                    if not self.reachable:
                        raise EnvironmentException("no such host")
                    self.images[name] = "official"
            case ["buildah", "tag", name, other]:
                self.images[other] = self.images[name]
            case ["buildah", "images", *_, reference]:
                return self.images.get(reference.removeprefix("reference="), "")
            case ["buildah", "inspect", *_, name]:
                return f"digest-of-{self.images[name]}"
        return ""

    def build(self, store: object, target: str, image: str, options: Sequence[str]) -> None:
        (name,) = (each.partition("=")[2].partition("=")[2] for each in options if "--build-arg=BASE_NAME" in each)
        self.built.append((name, self.images[BASE_IMAGE]))


def made(monkeypatch: pytest.MonkeyPatch, folder: Path, buildah: Buildah, pull: bool) -> None:
    here: dict[str, Any] = {
        "_run": buildah.run,
        "_build": buildah.build,
        "_store": lambda: nullcontext(["buildah"]),
        "only_one": lambda _: nullcontext(),
        "_make_stand_in": lambda _: buildah.images.update({STAND_IN: "stand-in"}),
    }
    for name, each in here.items():
        monkeypatch.setattr(kube_images, name, each)
    oci_archive("runtime", "localhost/streams-runtime:1", folder / "runtime.tar", {}, pull, 0)


def test_the_official_base_is_pulled_though_the_stand_in_has_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    buildah = Buildah(reachable=True)
    made(monkeypatch, tmp_path, buildah, pull=True)
    made(monkeypatch, tmp_path, buildah, pull=False)
    assert buildah.built == [(BASE_IMAGE, "official"), (STAND_IN, "stand-in")]


def test_no_image_is_built_where_the_official_base_can_t_be_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    buildah = Buildah(reachable=False)
    with pytest.raises(EnvironmentException, match=r"can't be had: no such host\. .*leave PULL out"):
        made(monkeypatch, tmp_path, buildah, pull=True)
    assert buildah.built == []


def test_the_stand_in_is_made_where_only_an_official_image_is_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    buildah = Buildah(reachable=False, **{BASE_IMAGE: "official"})
    made(monkeypatch, tmp_path, buildah, pull=False)
    assert buildah.built == [(STAND_IN, "stand-in")]
