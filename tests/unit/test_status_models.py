"""The models of the status: what they write, and what they read of what anybody may have written."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from streams_runtime.api.crd.crd_status import status_schema
from streams_runtime.api.status.condition_status import ConditionStatus
from streams_runtime.api.status.instance_status import ErrorStatus, InstanceStatus
from streams_runtime.api.status.resource_status import ApplicationStatus, RolledBackStatus
from streams_runtime.api.status.status_model import StatusModel

INSTANCE = {"name": "orders-0", "state": "RUNNING", "ready": True, "spec": "abc", "restartNonce": 1, "restarts": 0}


def test_a_document_has_what_is_known_by_the_names_of_the_definition() -> None:
    error = ErrorStatus(exception="LockException", message="held")
    written = InstanceStatus(name="orders-0", ready=False, restart_nonce=1, lag=None, error=error).document()
    assert list(written.items()) == [
        ("name", "orders-0"),
        ("ready", False),
        ("restartNonce", 1),
        ("error", {"class": "LockException", "message": "held"}),
    ]


def test_what_was_written_is_read_as_it_was() -> None:
    status = ApplicationStatus(
        state="RUNNING",
        instances=[InstanceStatus(name="orders-0", tasks=["0_0"], records_left=3)],
        conditions=[ConditionStatus(type="Ready", status="True")],
        rolled_back=RolledBackStatus(version="a", to="b"),
    )
    assert ApplicationStatus.read(status.document()) == status


@pytest.mark.parametrize("document", [None, {}, [], "text", 7, [1], {"instances": "many"}, {"restoration": [1]}])
def test_what_is_no_status_is_an_empty_one(document: object) -> None:
    assert ApplicationStatus.read(document) == ApplicationStatus()


@pytest.mark.parametrize(
    ("field", "value"),
    [("restarts", "3"), ("restarts", True), ("restarts", 1.0), ("ready", "True"), ("error", "E"), ("tasks", 1)],
)
def test_a_field_of_another_type_was_never_written_and_the_others_were(field: str, value: object) -> None:
    (read,) = ApplicationStatus.read({"instances": [{**INSTANCE, field: value}]}).instances
    without = {name: each for name, each in INSTANCE.items() if name != field}
    assert read == InstanceStatus.read(without)
    assert read.name == "orders-0"


def test_entries_of_another_type_are_left_out_and_the_others_stay_in_order() -> None:
    document: dict[str, Any] = {
        "instances": [1, INSTANCE, None, {**INSTANCE, "name": "orders-1", "lag": "x"}],
        "internalTopics": {"existing": ["a", 1, None, "b", {}], "init": {"nonce": "1", "result": "Created"}},
    }
    read = ApplicationStatus.read(document)
    assert [each.name for each in read.instances] == ["orders-0", "orders-1"]
    assert read.internal_topics.existing == ["a", "b"]
    assert read.internal_topics.init is not None
    assert (read.internal_topics.init.nonce, read.internal_topics.init.result) == (None, "Created")
    assert len(document["instances"]) == 4, "what was read is as it was"


def test_names_of_python_mean_nothing_in_a_document() -> None:
    assert InstanceStatus.read({"restart_nonce": 7}).restart_nonce == 0
    assert InstanceStatus.read({"restart_nonce": "7"}).restart_nonce == 0


def test_a_value_of_another_type_can_t_be_written() -> None:
    with pytest.raises(ValidationError):
        InstanceStatus(restarts="3")  # type: ignore[arg-type]


def test_a_field_that_the_definition_can_t_say_is_refused_by_name() -> None:
    class Odd(StatusModel):
        """Odd."""

        rate: float = 0.0

    with pytest.raises(ValueError, match=r"Odd\.rate"):
        status_schema(Odd)
