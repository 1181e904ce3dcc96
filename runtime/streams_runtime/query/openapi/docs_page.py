"""The OpenAPI document as a page that needs neither scripts nor the Internet, which pods rarely have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { border-top: 1px solid #ccc; padding-top: 1rem; } code { background: #f4f4f4; padding: 0 .2em; }
table { border-collapse: collapse; } th, td { border: 1px solid #ccc; padding: .2rem .6rem; text-align: left; }"""


def docs_page(document: Mapping[str, Any]) -> str:
    """The page, in HTML."""
    title = escape(document["info"]["title"])
    parts = [f"<h1>{title}</h1><p>{escape(document['info']['description'])}</p>"]
    parts.append('<p>For programs: <a href="openapi.json">openapi.json</a>.</p>')
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts += _operation(f"{method.upper()} {path}", operation)
    parts.append("<h2>Documents</h2>")
    for name, schema in document["components"]["schemas"].items():
        parts += _schema(name, schema)
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'


def _operation(what: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{escape(what)}</code></h2><p>{escape(operation.get('summary', ''))}</p>"
    rows = [
        (each["name"], each["in"] + ("" if each.get("required") else ", optional"), each.get("description", ""))
        for each in operation.get("parameters", ())
    ]
    yield from _table(("parameter", "in", ""), rows)
    answers = [
        (status, ", ".join(map(_type, _schemas(answer))), answer["description"])
        for status, answer in operation["responses"].items()
    ]
    yield from _table(("status", "document", ""), answers)


def _schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>'
    rows = [(field, _type(inner), inner.get("description", "")) for field, inner in schema["properties"].items()]
    yield from _table(("field", "type", ""), rows)


def _table(heads: tuple[str, ...], rows: list[tuple[str, str, str]]) -> Iterator[str]:
    if rows:
        yield "<table><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"
        for row in rows:
            yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        yield "</table>"


def _schemas(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [content["schema"] for content in answer.get("content", {}).values() if content.get("schema")]


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in short: `list of Store`, `string or integer`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    choices = schema.get("oneOf") or schema.get("anyOf")
    if choices:
        return " or ".join(_type(each) for each in choices if each.get("type") != "null")
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type", "any"))
