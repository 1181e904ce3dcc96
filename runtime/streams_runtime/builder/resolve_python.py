"""From a resource that names a topology in Python to one that has its sources, steps and sinks as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any

from streams_runtime.api.checks.function_checks import FUNCTIONS
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.load import Reading, read_application, read_text
from streams_runtime.api.spec.resource import ApplicationSpec, StreamsApplication
from streams_runtime.api.steps.topology_spec import TopologySpec
from streams_runtime.builder.builder import StreamsBuilder
from streams_runtime.builder.difference import differences
from streams_runtime.errors import ConfigException, InvalidApplicationException, Mistake
from streams_runtime.user_code import load, where_in

PYTHON = "spec.topology.python"
_OURS = str(Path(__file__).parents[1])
_PARTS = ("sources", "steps", "sinks")
_MADE = (*_PARTS, "functions")


class Beside(Enum):
    """What becomes of sources, steps and sinks that stand beside the name of a function that makes them."""

    COMPARED = "compared"
    """They count, and the function has to make the same."""
    TAKEN = "taken"
    """They count, and the function is not called: its code may be of another version, or not here."""
    REPLACED = "replaced"
    """What the function makes counts."""


def read_file(file: str | Path, beside: Beside = Beside.COMPARED) -> Reading:
    """What stands in a file, with a topology in Python built; its modules may lie beside the file.

    Raises:
        ConfigException: the file can't be read.
    """
    return read_with_python(read_text(file), str(file), Path(file).parent, beside)


def read_with_python(
    given: str | Mapping[str, Any],
    source: str = "application",
    folder: Path | None = None,
    beside: Beside = Beside.COMPARED,
) -> Reading:
    """The same of a text or a mapping; modules are looked for in `folder` too."""
    reading = _topology_read(given, source, folder, beside)
    if reading.application is None or beside is Beside.TAKEN:
        return reading
    return reading.with_more(_function_mistakes(reading.application.spec, folder))


def _topology_read(given: str | Mapping[str, Any], source: str, folder: Path | None, beside: Beside) -> Reading:
    reading = read_application(given, source)
    reference = _reference(reading.document)
    if reference is None:
        return reading
    topology = reading.document["spec"]["topology"]
    if beside is Beside.REPLACED or not any(topology.get(section) for section in _PARTS):
        return _built(reading, reference, folder)
    if beside is Beside.TAKEN or reading.application is None:
        return reading
    found = _comparison(reading.application.spec.topology, reference, folder)
    return reading.with_more(found)


def check_built(application: StreamsApplication) -> None:
    """See to it that the code that is here makes the topology of the application, where that names code.

    Raises:
        InvalidApplicationException: it makes another one, which is named, or can't be loaded. The image, or what is
        mounted, is of another version than the resource.
    """
    topology = application.spec.topology
    mistakes = () if topology.python is None else _comparison(topology, topology.python, None)
    mistakes += tuple(_function_mistakes(application.spec, None))
    if mistakes:
        raise InvalidApplicationException(mistakes)


def _reference(document: Mapping[str, Any]) -> str | None:
    spec = document.get("spec")
    topology = spec.get("topology") if isinstance(spec, Mapping) else None
    reference = topology.get("python") if isinstance(topology, Mapping) else None
    return reference if isinstance(reference, str) else None


def _built(reading: Reading, reference: str, folder: Path | None) -> Reading:
    """The reading of the document with what the module makes."""
    builder = _called(reference, folder)
    if isinstance(builder, StreamsBuilder) and "sources" not in builder.document:
        builder = Mistake(PYTHON, f"{reference!r} reads no topic", "call the builder's stream or table in it")
    topology = reading.document["spec"]["topology"]
    if topology.get("functions") and not topology.get("sources"):
        remedy = "give them to the builder: builder.udf or builder.pandas_udf"
        builder = Mistake("spec.topology.functions", "functions beside a topology in Python", remedy)
    if isinstance(builder, Mistake):
        others = tuple(each for each in reading.mistakes if each.path != PYTHON)
        return replace(reading, application=None, mistakes=(*others, builder))
    spec = reading.document["spec"]
    kept = {name: value for name, value in topology.items() if name not in _MADE}
    whole = {**reading.document, "spec": {**spec, "topology": {**kept, **builder.document}}}
    return replace(read_application(whole), origins=builder.origins)


def _comparison(declared: TopologySpec, reference: str, folder: Path | None) -> tuple[Mistake, ...]:
    builder = _called(reference, folder)
    if isinstance(builder, Mistake):
        return (builder,)
    built = builder.reading()
    if built.application is None:
        return built.reported
    found = differences(declared, built.application.spec.topology)
    if not found:
        return ()
    text = f"{reference!r} makes another topology than the one that stands beside it: {'; '.join(found)}"
    remedy = "build the file again (`streamsapp build FILE`), or run the code that this one was built from"
    return (Mistake(PYTHON, text, remedy),)


def _function_mistakes(spec: ApplicationSpec, folder: Path | None) -> Iterator[Mistake]:
    """Functions that can't be loaded, or are none."""
    named = {
        under(FUNCTIONS, name, "python" if each.python is not None else "pandas"): each.reference
        for name, each in spec.topology.functions.items()
    }
    for path, reference in {**named, **spec.processing.error_handlers}.items():
        try:
            found = load(reference, folder)
        except ConfigException as error:
            text, _, remedy = str(error).partition("; ")
            yield Mistake(path, text, remedy or "correct it")
            continue
        if not callable(found) or hasattr(found, "evalType"):
            remedy = "name a plain function" + ("; its type stands beside it, as returns" if path in named else "")
            yield Mistake(path, f"{reference!r} is {found!r}", remedy)


def _called(reference: str, folder: Path | None) -> StreamsBuilder | Mistake:
    """What the user's function returns, or why there is nothing."""
    try:
        function = load(reference, folder)
    except ConfigException as error:
        return _mistake("", error)
    if not callable(function):
        remedy = "name a function without arguments that returns a StreamsBuilder"
        return Mistake(PYTHON, f"{reference!r} is {function!r}, which is no function", remedy)
    try:
        returned = function()
    except ConfigException as error:
        return _mistake(f"{reference!r} failed: ", error)
    except (Exception, SystemExit) as error:
        return Mistake(PYTHON, f"{reference!r} failed: {where_in(_in_their_code(error))}", "correct it")
    if not isinstance(returned, StreamsBuilder):
        found = f"{reference!r} returns {type(returned).__name__}"
        return Mistake(PYTHON, found, "return the StreamsBuilder that the topology was made with")
    return returned


def _mistake(before: str, error: ConfigException) -> Mistake:
    found, _, remedy = str(error).partition("; ")
    return Mistake(PYTHON, before + found, remedy or "correct it")


def _in_their_code(error: BaseException) -> BaseException:
    """The error with a trace that begins and ends in the user's code, not in this project's."""
    first = error.__traceback__
    while first is not None and first.tb_next is not None and _is_ours(first):
        first = first.tb_next
    last = first
    while last is not None and last.tb_next is not None and not _is_ours(last.tb_next):
        last = last.tb_next
    if last is not None:
        last.tb_next = None
    return error.with_traceback(first)


def _is_ours(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_OURS)
