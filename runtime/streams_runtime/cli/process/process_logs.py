"""Log lines of the processes: for people, or one JSON object a line."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from typing import TextIO

import structlog


class LogFormat(StrEnum):
    """How log lines are written."""

    TEXT = "text"
    JSON = "json"


def configure_logging(form: LogFormat, level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send all log lines of this process to `stream` (default: stderr), with time, level, logger and fields.

    Stack traces appear at level DEBUG only: a user reads what happened, not where in the code.
    """
    stream = stream or sys.stderr
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.typing.Processor] = [
        structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)
    ]
    if form is LogFormat.JSON:
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("uvicorn", "httpx", "httpcore", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # The bridge to Spark's JVM logs the stack trace of every failure that it also raises.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
