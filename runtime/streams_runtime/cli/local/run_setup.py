"""Manual set-up in a local run: the init() that the file asks for, once, before any instance starts."""

from __future__ import annotations

from streams_runtime.api import StreamsApplication
from streams_runtime.cli.local.progress.run_events import Report, RunEvent
from streams_runtime.errors import MissingInternalTopicException
from streams_runtime.topics.application_topics import ApplicationTopics
from streams_runtime.topics.setup_policy import InitParameters

_SECONDS = 60.0  # for one init()


def init_where_manual(application: StreamsApplication, address: str, report: Report) -> None:
    """Do spec.internalTopics.init on the brokers at `address`, if set-up is manual, and report what was made.

    Raises:
        MissingInternalTopicException: topics are missing that the init() may not make, or the file has no init.
        StreamsException: what else an init() raises.
    """
    internal = application.spec.internal_topics
    if internal.setup == "automatic":
        return
    topics = ApplicationTopics(application, deadline=_SECONDS, bootstrap_servers=address)
    try:
        if internal.init is None:
            _require_all(topics)
            return
        outcome = topics.init(InitParameters.from_spec(internal.init))
    finally:
        topics.close()
    done = f"made {', '.join(outcome.created)}" if outcome.created else "all internal topics are there already"
    facts = {"result": outcome.result, "created": outcome.created, "existing": outcome.existing}
    report(RunEvent("init", f"init (nonce {internal.init.nonce}): {done}", facts))


def _require_all(topics: ApplicationTopics) -> None:
    report = topics.check()
    if report.ready:
        return
    there = f" (there are: {', '.join(report.existing)})" if report.existing else ""
    raise MissingInternalTopicException(
        f"internal topics are not on the brokers at {topics.address}: {', '.join(report.missing)}{there}."
        " spec.internalTopics.setup is manual, and the file asks for no init. Set them up: put"
        " spec.internalTopics.init: {nonce: 1} into the file, or run streamsapp init FILE --bootstrap-servers"
        f" {topics.address}"
    )
