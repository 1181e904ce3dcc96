"""The topology of ../flights-enriched.yaml in Python: the same model, so the same tasks, stores and topics."""

from streams_runtime.builder import StreamsBuilder, json

LONG_AGO = "timestamp'1970-01-01'"


def build() -> StreamsBuilder:
    builder = StreamsBuilder()
    flights = builder.stream(
        "flights-by-plane",
        name="flights",
        key="string",
        value=json("carrier STRING, flight INT, origin STRING, dest STRING, distance DOUBLE"),
    )
    planes = builder.table(
        "planes",
        key="string",
        value=json("manufacturer STRING, model STRING, seats INT"),
        timestamp=LONG_AGO,
        store="planes",
    )
    airlines = builder.table("airlines", key="string", value=json("name STRING"), timestamp=LONG_AGO, store="airlines")
    enriched = (
        flights.left_join(planes, {"manufacturer": "planes.manufacturer", "seats": "planes.seats"}, name="with-plane")
        .select_key("carrier", name="by-carrier")
        .join(airlines, {"airline": "airlines.name"}, name="enriched")
    )
    totals = enriched.group_by_key().aggregate(
        flights="count(*)",
        seats="sum(seats)",
        known="count(manufacturer)",
        distance="sum(distance)",
        store="by-airline",
    )
    enriched.to("flights-enriched")
    totals.to("airline-totals")
    return builder
