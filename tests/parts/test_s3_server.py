"""The S3 server of the tests, by the client that the runtime has, and each fault of the proxy before it."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store
from s3_server import Bucket

LARGE = bytes(range(256)) * 4096  # a MiB
FEW = {"max_retries": 0, "retry_timeout": timedelta(seconds=5)}
BACKOFF = {"init_backoff": timedelta(seconds=0.01)}
SEVERAL = {"max_retries": 3, "retry_timeout": timedelta(seconds=20), "backoff": BACKOFF}


def store_of(bucket: Bucket, retry: Any = FEW, timeout: float = 20.0) -> S3Store:
    config = {name.lower(): value for name, value in bucket.environment.items() if name != "AWS_ALLOW_HTTP"}
    return S3Store(
        bucket.name,
        config=config,  # type: ignore[arg-type] - names are checked when the store is made
        client_options={"allow_http": True, "timeout": timedelta(seconds=timeout)},
        retry_config=retry,
    )


@pytest.fixture
def store(bucket: Bucket) -> S3Store:
    return store_of(bucket)


def names(store: S3Store, prefix: str = "") -> list[str]:
    return sorted(each["path"] for page in store.list(prefix) for each in page)


def test_objects_come_back_as_they_were_put(bucket: Bucket, store: S3Store) -> None:
    for name, content in (("a/1.sst", LARGE), ("a/b/2", b""), ("m.json", b"{}")):
        store.put(name, content)
        assert bytes(store.get(name).bytes()) == content
    assert names(store) == ["a/1.sst", "a/b/2", "m.json"]
    assert names(store, "a") == ["a/1.sst", "a/b/2"]
    assert bytes(store.get_range("a/1.sst", start=255, length=3)) == b"\xff\x00\x01"
    assert bucket.objects == {"a/1.sst": LARGE, "a/b/2": b"", "m.json": b"{}"}


def test_an_object_is_written_over_whole_and_deleted(store: S3Store) -> None:
    store.put("a", b"1")
    store.put("a", b"22")
    assert bytes(store.get("a").bytes()) == b"22"
    store.delete("a")
    assert names(store) == []
    with pytest.raises(FileNotFoundError):
        store.get("a")


def test_of_two_that_create_the_same_object_one_is_refused(store: S3Store) -> None:
    store.put("a", b"1", mode="create")
    with pytest.raises(AlreadyExistsError):
        store.put("a", b"2", mode="create")
    assert bytes(store.get("a").bytes()) == b"1"


def test_an_object_in_parts_appears_when_all_are_there(bucket: Bucket, store: S3Store) -> None:
    with obstore.open_writer(store, "large", buffer_size=5 << 20) as writer:
        for _ in range(12):
            writer.write(LARGE)
        assert names(store) == []
    assert bytes(store.get("large").bytes()) == LARGE * 12


def test_buckets_of_two_tests_have_nothing_in_common(s3_server: Any) -> None:
    one, other = (store_of(s3_server.bucket()) for _ in range(2))
    one.put("a", b"1")
    assert names(other) == []


def test_wrong_credentials_are_refused(bucket: Bucket) -> None:
    wrong = Bucket(bucket.name, bucket.folder, {**bucket.environment, "AWS_SECRET_ACCESS_KEY": "x"}, bucket.faults)
    with pytest.raises(BaseError, match="SignatureDoesNotMatch"):
        store_of(wrong).put("a", b"1")
    assert bucket.objects == {}


def test_a_busy_store_is_met_by_trying_again(bucket: Bucket) -> None:
    fault = bucket.faults.busy("PUT", times=2)
    store_of(bucket, SEVERAL).put("a", b"1")
    assert fault.met == 2
    assert [each.fault for each in bucket.faults.requests] == ["busy", "busy", ""]
    assert bucket.objects == {"a": b"1"}


def test_a_store_that_stays_busy_never_hears_of_the_request(bucket: Bucket, store: S3Store) -> None:
    bucket.faults.busy("PUT", times=None)
    with pytest.raises(BaseError, match="503"):
        store.put("a", b"1")
    assert bucket.objects == {}


def test_an_answer_that_is_cut_half_way_is_an_error(bucket: Bucket, store: S3Store) -> None:
    store.put("a", LARGE)
    fault = bucket.faults.cut()
    with pytest.raises(BaseError, match="response body"):
        store.get("a").bytes()
    assert fault.met == 1


def test_a_client_that_tries_again_asks_for_the_rest_of_an_answer(bucket: Bucket) -> None:
    store = store_of(bucket, SEVERAL)
    store.put("a", LARGE)
    bucket.faults.cut()
    assert bytes(store.get("a").bytes()) == LARGE
    assert [each.fault for each in bucket.faults.requests if each.method == "GET"] == ["cut", ""]


def test_an_upload_that_is_cut_half_way_leaves_no_object(bucket: Bucket, store: S3Store) -> None:
    fault = bucket.faults.cut_upload()
    with pytest.raises(BaseError):
        store.put("a", LARGE)
    assert fault.met == 1
    assert "a" not in bucket.objects
    assert names(store) == []


def test_wrong_bytes_pass_for_right_ones_as_far_as_http_can_tell(bucket: Bucket, store: S3Store) -> None:
    store.put("a", LARGE)
    bucket.faults.wrong_bytes()
    wrong = bytes(store.get("a").bytes())
    assert len(wrong) == len(LARGE)
    assert [index for index, (here, there) in enumerate(zip(wrong, LARGE, strict=True)) if here != there] == [
        len(LARGE) // 2
    ]
    assert bytes(store.get("a").bytes()) == LARGE


def test_a_lost_answer_is_an_error_of_what_was_done(bucket: Bucket, store: S3Store) -> None:
    bucket.faults.lost_answer()
    with pytest.raises(BaseError):
        store.put("a", b"1")
    assert bucket.objects == {"a": b"1"}


def test_a_slow_answer_comes_later(bucket: Bucket) -> None:
    store_of(bucket).put("a", b"1")
    bucket.faults.slow(30.0, "GET")
    with pytest.raises(BaseError):
        store_of(bucket, timeout=0.5).get("a")
    bucket.faults.slow(0.2, "GET")
    assert bytes(store_of(bucket).get("a").bytes()) == b"1"


def test_a_request_that_hangs_is_cut_when_the_fault_is_over(bucket: Bucket, store: S3Store) -> None:
    fault = bucket.faults.hang("PUT")
    errors: list[BaseException] = []

    def put() -> None:
        try:
            store.put("a", b"1")
        except BaseError as error:
            errors.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    assert fault.done.wait(20)
    assert thread.is_alive()
    bucket.faults.clear()
    thread.join(20)
    assert len(errors) == 1
    assert bucket.objects == {}


def test_a_fault_meets_only_the_requests_that_fit(bucket: Bucket, store: S3Store) -> None:
    fault = bucket.faults.busy("GET", path=r"/a/.*[.]sst", times=None)
    store.put("a/1.sst", b"1")
    store.put("a/manifest", b"2")
    assert bytes(store.get("a/manifest").bytes()) == b"2"
    with pytest.raises(BaseError):
        store.get("a/1.sst")
    assert fault.met == 1
