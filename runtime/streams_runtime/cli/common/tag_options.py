"""The option --client-tag: where instances are."""

from __future__ import annotations

from collections.abc import Collection

import typer

OPTION = "--client-tag"


def parse_tags(given: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The values of each tag, of texts such as `zone=a,b`.

    Raises typer.BadParameter for what has no key or no value, and for a key that is given twice.
    """
    tags: dict[str, tuple[str, ...]] = {}
    for text in given:
        key, _, values = text.partition("=")
        found = tuple(values.split(","))
        if not key or not all(found):
            raise typer.BadParameter(
                f"found {text!r}; write KEY=VALUE, or one value for each instance in turn: zone=a,b", param_hint=OPTION
            )
        if key in tags:
            raise typer.BadParameter(f"{key} is given twice; join its values: {key}=a,b", param_hint=OPTION)
        tags[key] = found
    return tags


def own_tags(given: Collection[str]) -> dict[str, str]:
    """The tags of one instance, of texts such as `zone=a`. Raises as `parse_tags`."""
    return {key: ",".join(values) for key, values in parse_tags(given).items()}
