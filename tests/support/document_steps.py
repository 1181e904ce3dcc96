"""What a page of the documentation tells its reader to do, in order: files to write and commands to type.

A block ```console has commands behind `$ ` and below each what it prints, in which `…` stands for what varies: alone on
a line for any lines, inside of a line for any text. Any other block that a line ending with a file's name in backticks
and a colon stands before is that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from documents import Document

VARIES = "…"
_PROMPT = "$ "
_NAMED = re.compile(r"`([\w.-]+)`:$")
# Their output is looked at again and again, as a reader does who waits for what the page says.
_ONLY_READING = ("streamsapp query ", "grep ", "tail ")


@dataclass(frozen=True, slots=True)
class WriteFile:
    """A file in the present folder; `place` is where its block begins: the page and the line."""

    place: str
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class TypeCommand:
    """A command and what it prints, without the last line break."""

    place: str
    command: str
    output: str = ""

    @property
    def only_reads(self) -> bool:
        """Whether it may be typed again until it prints what the page says."""
        return self.command.startswith(_ONLY_READING)


Step = WriteFile | TypeCommand


def steps_of(text: str, page: str = "page") -> Iterator[Step]:
    """The steps of a page in Markdown; `page` is its name."""
    lines = text.splitlines()
    for block in Document(Path(page), text).blocks:
        before = next((line for line in reversed(lines[: block.line - 1]) if line.strip()), "")
        if block.info == "console":
            yield from _commands(page, block.line + 1, block.text.splitlines())
        elif named := _NAMED.search(before):
            yield WriteFile(f"{page}:{block.line}", named[1], block.text)


def _commands(page: str, line: int, inside: list[str]) -> Iterator[TypeCommand]:
    starts = [at for at, each in enumerate(inside) if each.startswith(_PROMPT)]
    for start, end in zip(starts, [*starts[1:], len(inside)], strict=True):
        output = "\n".join(inside[start + 1 : end])
        yield TypeCommand(f"{page}:{line + start}", inside[start].removeprefix(_PROMPT), output)


def fits(expected: str, printed: str) -> bool:
    """Whether a command printed what the page says; spaces at the ends of lines do not count."""
    pattern = "".join(
        r"(?:.*\n)*" if line == VARIES else r".*".join(map(re.escape, line.rstrip().split(VARIES))) + r"\n"
        for line in expected.splitlines()
    )
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed.splitlines())) is not None


def replaced(step: Step, replacements: Mapping[str, str]) -> Step:
    """The step with other words in its command and its output, such as a free port in place of the page's."""
    if isinstance(step, WriteFile):
        return step
    command, output = step.command, step.output
    for found, put in replacements.items():
        command, output = command.replace(found, put), output.replace(found, put)
    return TypeCommand(step.place, command, output)
