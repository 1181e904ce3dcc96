"""Verbs that are loaded when they are called. The list of them is printed from a table, which needs none of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

Command = TyperGroup | TyperCommand


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb's function, or the Typer of its own verbs, as `module:name`; and the first paragraph of its help."""

    place: str
    help: str

    def load(self, name: str) -> Any:
        """The command, with its module loaded."""
        module, _, attribute = self.place.partition(":")
        found = getattr(import_module(module), attribute)
        verb = found
        if not isinstance(found, typer.Typer):
            verb = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            verb.command(name)(found)
        command = get_command(verb)
        command.name = name
        return command


class _Commands(MutableMapping[str, Any]):
    """The commands of a table by name, each loaded when it is first asked for."""

    def __init__(self, verbs: Mapping[str, Verb]) -> None:
        self._verbs = verbs
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._verbs[name].load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._verbs

    def __iter__(self) -> Iterator[str]:
        return iter(self._verbs)

    def __len__(self) -> int:
        return len(self._verbs)

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError(f"{name}: verbs stand in the table that the group was made of")

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name}: verbs stand in the table that the group was made of")


def loading(verbs: Mapping[str, Verb]) -> type[TyperGroup]:
    """The class of a Typer's group (`cls`) with these verbs by name, in the order in which --help lists them."""

    class VerbGroup(TyperGroup):
        """Lists the verbs by what the table says of them."""

        def __init__(self, **attributes: Any) -> None:
            super().__init__(**{**attributes, "commands": _Commands(verbs)})

        def format_help(self, ctx: Any, formatter: Any) -> None:
            listed: dict[str, Any] = {name: TyperCommand(name, help=verb.help) for name, verb in verbs.items()}
            alike = TyperGroup(
                name=self.name,
                help=self.help,
                params=self.params,
                commands=listed,
                rich_markup_mode=self.rich_markup_mode,
            )
            alike.format_help(ctx, formatter)

    return VerbGroup
