"""Every metric of the operator: `python -m streams_operator.operator_catalogue` prints the page's tables."""

from __future__ import annotations

from typing import Final

from streams_runtime.metrics.metric_definition import Kind, Metric, Section
from streams_runtime.metrics.metric_tables import printed

_APPLICATION = ("namespace", "application")


def _operator(name: str, kind: Kind, unit: str, meaning: str, *labels: str) -> Metric:
    return Metric(f"streams_operator_{name}", kind, unit, meaning, labels)


ROUNDS: Final = _operator(
    "reconciles", "counter", "rounds", "Rounds: done, again (a conflict, to be looked at anew), failed.", "result"
)
ROUND_SECONDS: Final = _operator("reconcile_duration_seconds", "histogram", "s", "How long rounds take.")
QUEUE_LENGTH: Final = _operator("queue_length", "gauge", "resources", "Resources that are due and wait.")
QUEUE_OLDEST: Final = _operator(
    "queue_oldest_seconds", "gauge", "s", "How long the one that has waited longest has been due."
)
QUEUE_WAIT: Final = _operator("queue_wait_seconds", "histogram", "s", "How long resources were due until their round.")
LEADER: Final = _operator("leader", "gauge", "0 or 1", "1 on the replica that acts.")
INITS: Final = _operator("topic_inits", "counter", "inits", "Explicit inits of internal topics.", "result")
WAITING: Final = _operator(
    "image_waiting_applications",
    "gauge",
    "applications",
    "Applications that have not had their turn for the default image.",
)
STOPPED: Final = _operator(
    "image_rollout_stopped",
    "gauge",
    "0 or 1",
    "1 while no further application gets the default image, as one that has it is Degraded: alert on it.",
)
REQUESTS: Final = _operator(
    "api_requests",
    "counter",
    "requests",
    "Requests to the API server by verb, resource and the answer's status; `none`: no answer came.",
    "verb",
    "resource",
    "code",
)
REQUEST_SECONDS: Final = _operator(
    "api_request_duration_seconds",
    "histogram",
    "s",
    "How long they take, those without an answer too. Watches are not among them.",
    "verb",
    "resource",
)
BROKER_SECONDS: Final = _operator(
    "broker_work_duration_seconds",
    "histogram",
    "s",
    "Work at the brokers by kind (check, setup, init, delete), without the wait for its turn: done, failed.",
    "kind",
    "result",
)
STATE: Final = _operator(
    "application_state", "gauge", "0 or 1", "1 for the state that it is in.", *_APPLICATION, "state"
)
PODS: Final = _operator(
    "application_pods", "gauge", "pods", "Pods by the state that they report.", *_APPLICATION, "state"
)
WANTED: Final = _operator(
    "application_wanted_instances", "gauge", "instances", "Instances that there are to be.", *_APPLICATION
)
READY: Final = _operator(
    "application_ready_instances", "gauge", "instances", "Instances that are ready.", *_APPLICATION
)
CONDITION: Final = _operator(
    "application_condition",
    "gauge",
    "0 or 1",
    '1 for each condition that is `True`, with its reason: alert on `condition="Degraded"`.',
    *_APPLICATION,
    "condition",
    "reason",
)
LAG: Final = _operator(
    "application_lag_records", "gauge", "records", "Records that are not processed yet.", *_APPLICATION
)
LEFT: Final = _operator(
    "application_restoration_records_left", "gauge", "records", "Changelog records to restore.", *_APPLICATION
)
SECTIONS: Final = (
    Section(
        "The operator", (ROUNDS, ROUND_SECONDS, QUEUE_LENGTH, QUEUE_OLDEST, QUEUE_WAIT, LEADER, INITS, WAITING, STOPPED)
    ),
    Section("API server and brokers", (REQUESTS, REQUEST_SECONDS, BROKER_SECONDS)),
    Section("Applications", (STATE, PODS, WANTED, READY, CONDITION, LAG, LEFT)),
)
CATALOGUE: Final[tuple[Metric, ...]] = tuple(each for section in SECTIONS for each in section.metrics)

if __name__ == "__main__":
    print(printed(SECTIONS))
