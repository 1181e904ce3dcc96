"""Where in a user's file a part of an expression stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from streams_runtime.api.reading.field_paths import tokens
from streams_runtime.errors import Mistake


def placed(mistakes: Iterable[Mistake], text: str | None) -> list[Mistake]:
    """The mistakes, those within an expression with their place: line and column of the file's `text`.

    Without a file, as at the API server, and where the file has the field in another form: the character of the field.
    """
    given = list(mistakes)
    if all(each.at is None for each in given):
        return given
    root = yaml.compose(text, Loader=yaml.SafeLoader) if text is not None else None
    return [each if each.at is None else _placed(each, each.at, text or "", root) for each in given]


def _placed(mistake: Mistake, at: int, text: str, root: Node | None) -> Mistake:
    node = _node(root, mistake.path)
    index = _index(node, at, text) if isinstance(node, ScalarNode) else None
    if index is None:
        where = f"character {at + 1}"
    else:
        where = f"line {text.count(chr(10), 0, index) + 1}, column {index - text.rfind(chr(10), 0, index)}"
    return replace(mistake, found=f"{mistake.found} ({where})", at=None)


def _node(root: Node | None, path: str) -> Node | None:
    node = root
    for token in tokens(path):
        if isinstance(node, SequenceNode) and isinstance(token, int):
            node = node.value[token] if token < len(node.value) else None
        elif isinstance(node, MappingNode):
            node = next((value for key, value in node.value if key.value == token), None)
        else:
            return None
    return node


def _index(node: ScalarNode, at: int, text: str) -> int | None:
    """Where in the file the character `at` of a text is, quotes, folded lines and indentation left out."""
    index, end = node.start_mark.index, node.end_mark.index
    if node.style in ("|", ">"):
        index = text.find("\n", index) + 1
    for number, character in enumerate(node.value[: at + 1]):
        if character.isspace():
            while number < at and index < end and text[index].isspace():
                index += 1
            continue
        while index < end and text[index] != character:
            index += 1
        if number < at:
            index += 1
    return index if index < end and text[index] == node.value[at : at + 1] else None
