"""Log lines of the operator: for people, or one JSON object a line."""

from __future__ import annotations

import logging
import sys

from streams_runtime.spared_imports import absent

with absent("rich"):  # of tracebacks with colours, which nothing here prints: a tenth of a second of a start
    import structlog


def configure_logging(form: str, level: str) -> None:
    """Send all log lines of this process to stderr, with time, level, logger and fields."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.typing.Processor] = [
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    ]
    if form == "json":
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # One line for each event of each object; what comes of it is logged here.
    for noisy in ("kopf", "aiohttp.access", "asyncio", "kubernetes"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.getLogger("kopf.objects").setLevel(logging.ERROR)
    # `handlers` logs the end of a watch in one line, and signals belong to the main thread.
    logging.getLogger("kopf._core.reactor.orchestration").setLevel(logging.CRITICAL)
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
