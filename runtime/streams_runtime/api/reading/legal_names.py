"""Which names are legal: applications, sources, steps, stores, topics."""

from __future__ import annotations

import re

MAX_TOPIC = 249
_APPLICATION = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
PART_PATTERN = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
_PART = re.compile(PART_PATTERN)
TOPIC_PATTERN = r"[A-Za-z0-9._-]+"
_TOPIC = re.compile(TOPIC_PATTERN)
# A pod is called NAME-0 to NAME-9999, and its name is its host name, of at most 63 characters.
MAX_APPLICATION = 58
MAX_PART = 200


def application_name_problem(name: str) -> tuple[str, str] | None:
    """What is wrong with a resource's name and what would do; None when it is legal (a DNS-1123 label)."""
    if len(name) > MAX_APPLICATION:
        return (
            f"found a name of {len(name)} characters",
            f"use at most {MAX_APPLICATION}: pods are called NAME-0, NAME-1, …",
        )
    if not _APPLICATION.fullmatch(name):
        return f"found {name!r}", "use small letters, digits and -, with a letter or digit at both ends"
    return None


def part_name_problem(name: str) -> tuple[str, str] | None:
    """The same for names that become parts of topics and folders: sources, steps, stores, application ids."""
    if len(name) > MAX_PART:
        return f"found a name of {len(name)} characters", f"use at most {MAX_PART}"
    if not _PART.fullmatch(name):
        return (
            f"found {name!r}",
            "use letters, digits, and . _ - between them: it becomes part of a topic's name",
        )
    return None


def topic_problem(name: str) -> tuple[str, str] | None:
    """The same for a topic, by Kafka's own rules."""
    if name in ("", ".", "..") or not _TOPIC.fullmatch(name):
        return f"found {name!r}, which is no name for a topic", "use letters, digits, . _ and -"
    if len(name) > MAX_TOPIC:
        return f"found a topic's name of {len(name)} characters", f"use at most {MAX_TOPIC}"
    return None


def colliding(topic: str) -> str:
    """Kafka refuses two topics for which this is equal: in its metrics `.` and `_` are the same."""
    return topic.replace(".", "_")


def branch_name(step: str, branch: str) -> str:
    """What others call a branch of a split step."""
    return f"{step}.{branch}"


def changelog_topic(application_id: str, store: str) -> str:
    """The changelog of a store."""
    return f"{application_id}-{store}-changelog"


def repartition_topic(application_id: str, step: str) -> str:
    """The repartition topic of a keyBy step, or of an aggregate with groupBy."""
    return f"{application_id}-{step}-repartition"


def repartition_parts(step: str) -> tuple[str, str]:
    """What the parts at a step's repartition topic are called: the one that writes to it, and the one that reads it."""
    return f"{step}-repartition", f"{step}-repartition-source"


def transactional_id(application_id: str, member: str) -> str:
    """The transactional id of a thread, by its static name in the group (`instance-thread`).

    It begins with `application_id-`, by which access lists give rights (as Kafka Streams' does). No application id has
    a colon, so the first one ends the application's part: `a` with the member `b-c-1` and `a-b` with `c-1` differ.
    """
    return f"{application_id}-:{member}"


def dedupe_store(step: str) -> str:
    """The store of a dedupe step: which ids it has seen, and when."""
    return f"{step}-dedupe-store"


def process_store(step: str) -> str:
    """The store of a process step's own: what each of its tasks has come to."""
    return f"{step}-process-store"


def suppress_store(step: str) -> str:
    """The store of a toStream with suppress: the changes that wait."""
    return f"{step}-suppress-store"


def suppressed_part(step: str) -> str:
    """What the part of a toStream with suppress is called that takes the table's changes, before any of them waits."""
    return f"{step}-suppress"


def registration_topic(application_id: str, step: str) -> str:
    """What a join by a foreign key writes subscriptions to."""
    return f"{application_id}-{step}-subscription-registration-topic"


def response_topic(application_id: str, step: str) -> str:
    """What the other table's rows come back by to a join by a foreign key."""
    return f"{application_id}-{step}-subscription-response-topic"


def subscription_store(step: str) -> str:
    """The store of a join by a foreign key in which each row of the other table finds those that name it."""
    return f"{step}-subscription-store"


def foreign_key_parts(step: str) -> tuple[str, str, str, str]:
    """What the parts of a join by a foreign key are called: those that write subscriptions, read them, and answer, and
    the one that reads the answers.
    """
    return (
        f"{step}-subscription-registration",
        f"{step}-subscription-registration-source",
        f"{step}-subscription-response",
        f"{step}-subscription-response-source",
    )


def join_stores(step: str, inner: bool) -> tuple[str, ...]:
    """The stores of a step that joins two streams: its stream's records, the other's, those without a match so far."""
    shared = () if inner else (f"{step}-shared-join-store",)
    return (f"{step}-this-join-store", f"{step}-other-join-store", *shared)
