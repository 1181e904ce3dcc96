"""Scripts of Argo CD's resource customizations, run as Argo CD runs them.

Source: util/lua/lua.go of Argo CD. A script has the object as the global `obj`, Lua 5.1, and the libraries base, table,
package and os; scripts in argocd-cm have no others. `python tests/support/argo_lua.py > operator/argocd/argocd-cm.yaml`
writes the patch for argocd-cm that users apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from lupa import lua51

SCRIPTS = Path(__file__).parents[2] / "operator" / "argocd"
ACTIONS = ("pause", "suspend", "resume", "restart")
_KEY = "streamsoperator.io_StreamsApplication"
_TAKEN_AWAY = ("string", "math", "io", "debug", "coroutine", "python")
_HEADER = """# Argo CD: health and actions of StreamsApplication, from the scripts beside this file.
# kubectl patch configmap argocd-cm --namespace argocd --patch-file argocd-cm.yaml
"""


def script(name: str) -> str:
    """The text of a script, by its path below operator/argocd without the suffix."""
    return (SCRIPTS / f"{name}.lua").read_text(encoding="utf-8")


def run(text: str, resource: Mapping[str, Any]) -> Any:
    """What a script returns for an object, as JSON has it. Raises LuaError with Lua's own words."""
    lua = lua51.LuaRuntime(unpack_returned_tuples=True, register_eval=False)
    lua.execute('debug.setmetatable("", nil)')
    for name in _TAKEN_AWAY:
        lua.globals()[name] = None
    lua.globals().obj = _table(lua, resource)
    return _plain(lua.execute(text))


def health(resource: Mapping[str, Any]) -> tuple[str, str]:
    """Status and message that Argo CD shows for an object."""
    found = run(script("health"), resource)
    assert set(found) == {"status", "message"}
    return found["status"], found["message"]


def config_map() -> str:
    """The patch for argocd-cm."""
    actions = {
        "discovery.lua": script("actions/discovery"),
        "definitions": [{"name": name, "action.lua": script(f"actions/{name}")} for name in ACTIONS],
    }
    data = {
        f"resource.customizations.health.{_KEY}": script("health"),
        f"resource.customizations.actions.{_KEY}": _yaml(actions),
    }
    return _HEADER + _yaml({"data": data})


class _Block(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


_Block.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def _yaml(document: Mapping[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Block, sort_keys=False, width=200)


def _table(lua: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        return lua.table_from({key: _table(lua, each) for key, each in value.items() if each is not None})
    if isinstance(value, list | tuple):
        return lua.table_from([_table(lua, each) for each in value])
    return value


def _plain(value: Any) -> Any:
    if lua51.lua_type(value) != "table":
        return int(value) if isinstance(value, float) and value.is_integer() else value
    found = {key: _plain(each) for key, each in value.items()}
    # As in Argo CD, an empty table is an empty list.
    return list(found.values()) if all(isinstance(key, int | float) for key in found) else found


if __name__ == "__main__":
    print(config_map(), end="")
