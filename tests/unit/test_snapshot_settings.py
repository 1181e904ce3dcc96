"""What `spec.state.snapshots` may say, and what is refused by name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from operator_world import resource
from pydantic import ValidationError

from streams_runtime.api import read_application
from streams_runtime.api.spec.snapshots_spec import LONGEST_URL, SnapshotsSpec
from streams_runtime.cli.snapshots.snapshot_credentials import credential_mistakes

URL = "s3://bucket/prefix"


def mistakes(snapshots: Any) -> list[str]:
    found = read_application(resource({"state": {"snapshots": snapshots}}), "here").mistakes
    return list(map(str, found))


def test_what_is_not_said_is_as_by_default() -> None:
    found = SnapshotsSpec.model_validate({"url": URL})
    assert (found.url, found.interval, found.keep, found.secret_ref) == (URL, timedelta(minutes=5), 2, None)


@pytest.mark.parametrize(
    "url",
    [
        "s3://abc",
        "gs://my_bucket.of.shop/a/b",
        "az://container/tenant=7/~x+y",
        "file:///mnt/snapshots",
        "s3://bucket/..hidden/...a",
        f"s3://bucket/{'a' * (LONGEST_URL - 12)}",
    ],
)
def test_urls_that_name_a_prefix(url: str) -> None:
    assert mistakes({"url": url}) == []
    assert SnapshotsSpec.model_validate({"url": f"{url}/"[:LONGEST_URL]}).url == url


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (None, "found None, which is no url"),
        (5, "found 5, which is no url"),
        ("", "names no bucket"),
        ("bucket/prefix", "names no bucket"),
        ("s3:bucket", "names no bucket"),
        ("s3://", "names no bucket"),
        ("s3://ab", "names no bucket"),
        ("s3:///prefix", "names no bucket"),
        ("s3://bucket//a", "letters, digits and - _ . = + ~"),
        ("s3://bucket/a/../b", "letters, digits and - _ . = + ~"),
        ("s3://bucket/.", "letters, digits and - _ . = + ~"),
        ("s3://bucket/ä", "letters, digits and - _ . = + ~"),
        ("s3://bucket/a b", "letters, digits and - _ . = + ~"),
        ("s3://bucket/a#b", "letters, digits and - _ . = + ~"),
        ("s3://bucket/a\n", "letters, digits and - _ . = + ~"),
        ("s3a://bucket/a", "snapshots know no s3a://"),
        ("https://bucket.s3.amazonaws.com/a", "snapshots know no https://"),
        ("file://host/folder", "names no folder"),
        ("file:///", "names no folder"),
        ("file:///mnt/../etc", "names no folder"),
        ("file:/mnt", "names no folder"),
        (f"s3://bucket/{'a' * LONGEST_URL}", f"give one of at most {LONGEST_URL}"),
    ],
)
def test_urls_that_name_none_are_refused_with_what_would_do(url: object, says: str) -> None:
    (mistake,) = mistakes({"url": url})
    assert mistake.startswith("spec.state.snapshots.url: ")
    assert says in mistake


@pytest.mark.parametrize("url", ["s3://key:hunter2@bucket/a", "az://box/a?sig=hunter2", "s3://bucket/a?k=hunter2@"])
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str) -> None:
    (mistake,) = mistakes({"url": url})
    assert "hunter2" not in mistake
    assert "secretRef" in mistake


@pytest.mark.parametrize("interval", ["1s", "5m", "1d"])
def test_intervals_from_a_second_to_a_day(interval: str) -> None:
    assert mistakes({"url": URL, "interval": interval}) == []


@pytest.mark.parametrize(
    ("more", "where", "says"),
    [
        ({"interval": "999ms"}, "interval", "found 999ms; give 1s to 1d"),
        ({"interval": "1d1ms"}, "interval", "give 1s to 1d"),
        ({"interval": 300}, "interval", "write numbers with their units"),
        ({"keep": 0}, "keep", "found 0"),
        ({"keep": 101}, "keep", "found 101"),
        ({"keep": "2"}, "keep", "found '2'"),
        ({"secretRef": {}}, "secretRef.name", "missing"),
        ({"secretRef": {"name": "Shop"}}, "secretRef.name", "no name of a Kubernetes object"),
        ({"secretRef": {"name": "shop", "key": "x"}}, "secretRef.key", "no such field"),
        ({"intervall": "5m"}, "intervall", "did you mean 'interval'"),
    ],
)
def test_other_values_are_refused_at_their_fields(more: dict[str, Any], where: str, says: str) -> None:
    (mistake,) = mistakes({"url": URL, **more})
    assert mistake.startswith(f"spec.state.snapshots.{where}: ")
    assert says in mistake


def test_a_url_has_to_be_given() -> None:
    (mistake,) = mistakes({"keep": 3})
    assert mistake.startswith("spec.state.snapshots.url: is missing")
    with pytest.raises(ValidationError):
        SnapshotsSpec.model_validate({})


def test_a_folder_needs_no_credentials() -> None:
    (mistake,) = mistakes({"url": "file:///mnt/a", "secretRef": {"name": "shop"}})
    assert mistake.startswith("spec.state.snapshots.secretRef: is given for a folder, which needs no credentials")


def test_mistakes_have_their_lines_in_the_order_of_the_file() -> None:
    given = resource({"state": {"snapshots": {"keep": 0, "interval": "1ms", "url": "ftp://x"}}})
    found = [each.path for each in read_application(given, "here").mistakes]
    assert found == [f"spec.state.snapshots.{field}" for field in ("keep", "interval", "url")]


@pytest.mark.parametrize(
    ("url", "environment", "variables"),
    [
        (URL, {}, "AWS_…"),
        (URL, {"AZURE_STORAGE_ACCOUNT_KEY": "k"}, "AWS_…"),
        (URL, {"AWS_ACCESS_KEY_ID": "k"}, None),
        ("gs://bucket", {"AWS_ACCESS_KEY_ID": "k"}, "GOOGLE_…"),
        ("gs://bucket", {"GOOGLE_SERVICE_ACCOUNT": "k"}, None),
        ("az://box", {"AZURE_STORAGE_ACCOUNT_KEY": "k"}, None),
    ],
)
def test_a_run_on_this_machine_has_credentials_by_its_environment(
    url: str, environment: dict[str, str], variables: str | None
) -> None:
    snapshots = SnapshotsSpec.model_validate({"url": url, "secretRef": {"name": "shop"}})
    found = list(credential_mistakes(snapshots, environment))
    assert [each.path for each in found] == ["spec.state.snapshots.secretRef"] * (variables is not None)
    if variables is not None:
        assert variables in found[0].remedy


def test_without_a_secret_a_run_on_this_machine_takes_what_there_is() -> None:
    assert list(credential_mistakes(SnapshotsSpec.model_validate({"url": URL}), {})) == []
    assert list(credential_mistakes(None, {})) == []
