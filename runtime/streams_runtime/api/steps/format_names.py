"""What the formats have in common, by their names."""

from __future__ import annotations

OF_COLUMNS = ("json", "avro", "protobuf", "jsonschema")
"""Those whose values have named columns; a value of any other is one column named `value`."""

REGISTERED = ("avro", "protobuf", "jsonschema")
"""Those whose schemas a registry holds: the schema's id stands in every record."""
