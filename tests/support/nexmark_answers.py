"""NEXMark's queries as SQL for DuckDB: what each file of examples/nexmark has to write."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from nexmark.events import Event

FOLDER = Path(__file__).parents[2] / "examples" / "nexmark"
SIDE_INPUT = {str(number): {"value": f"side-{number}"} for number in range(1000, 1100)}
"""The table of q13: of later auctions it has nothing."""

_WINDOW = "time_bucket(interval 10 seconds, {}.dateTime)"
_COUNTS = """(select auction, count(*) as num, start from (select *, unnest(range(0, 10, 2)) as back from bids),
    lateral (select time_bucket(interval 2 seconds, dateTime) - to_seconds(back) as start) group by auction, start)"""
_RANKS = {
    "total": "true",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 and price < 1000000",
    "rank3": "price >= 1000000",
}
_COUNTED = {"bids": "*", "bidders": "distinct bidder", "auctions": "distinct auction"}
_STATISTICS = ", ".join(
    f"count({what}) filter (where {which}) as {rank}_{name}"
    for rank, which in _RANKS.items()
    for name, what in _COUNTED.items()
)

SQL: Mapping[str, str] = {
    "q0": "select auction, bidder, price, dateTime, extra from bids",
    "q1": "select auction, bidder, 0.908 * price as price, dateTime, extra from bids",
    "q2": "select auction, price from bids where mod(auction, 123) = 0",
    "q3": """select p.name, p.city, p.state, a.id from auctions a join people p on a.seller = p.id
        where a.category = 10 and (p.state = 'OR' or p.state = 'ID' or p.state = 'CA')""",
    "q4": """select category, avg(final) as average from (select max(b.price) as final, a.category
        from auctions a join bids b on a.id = b.auction and b.dateTime between a.dateTime and a.expires
        group by a.id, a.category) group by category""",
    "q5": f"""select num, auction, start from {_COUNTS} bids
        join (select max(num) as most, start from {_COUNTS} group by start) using (start) where num >= most""",
    "q7": f"""select auction, price, bidder, dateTime, extra from bids b
        join (select max(price) as price, {_WINDOW.format("bids")} as start from bids group by start) using (price)
        where {_WINDOW.format("b")} = start""",
    "q8": f"""select distinct p.id, p.name, {_WINDOW.format("p")} as starttime from people p
        join auctions a on p.id = a.seller and {_WINDOW.format("p")} = {_WINDOW.format("a")}""",
    "q6": """select seller, avg(final) as average from (select max(b.price) as final, a.seller, a.id, a.expires
        from auctions a join bids b on a.id = b.auction and b.dateTime between a.dateTime and a.expires
        group by a.id, a.seller, a.expires
        qualify row_number() over (partition by a.seller order by a.expires desc, a.id desc) <= 10) group by seller""",
    "q9": """select a.*, b.auction, b.bidder, b.price, b.dateTime as bid_dateTime, b.extra as bid_extra
        from auctions a join bids b on a.id = b.auction and b.dateTime between a.dateTime and a.expires
        qualify row_number() over (partition by a.id order by b.price desc, b.dateTime) = 1""",
    "q10": """select auction, bidder, price, dateTime, extra, strftime(dateTime, '%Y-%m-%d') as dt,
        strftime(dateTime, '%H:%M') as hm from bids""",
    "q11": """select bidder, count(*) as bid_count, min(dateTime) as starttime,
        max(dateTime) + interval 10 seconds as endtime
        from (select *, count(*) filter (apart) over before as nth from (
            select *, dateTime - lag(dateTime) over before > interval 10 seconds as apart from bids
            window before as (partition by bidder order by dateTime)
        ) window before as (partition by bidder order by dateTime)) group by bidder, nth""",
    # By processing time a batch has one: all of it is in one window.
    "q12": "select bidder, count(*) as bid_count from bids group by bidder",
    "q13": """select auction, bidder, price, dateTime, value from bids join side on mod(auction, 10000) = key""",
    "q14": """select auction, bidder, 0.908 * price as price, case when hour(dateTime) >= 8 and hour(dateTime) <= 18
        then 'dayTime' when hour(dateTime) <= 6 or hour(dateTime) >= 20 then 'nightTime' else 'otherTime' end
        as bidTimeType, dateTime, extra, len(extra) - len(replace(extra, 'c', '')) as c_counts from bids
        where 0.908 * price > 1000000 and 0.908 * price < 50000000""",
    "q15": f"select strftime(dateTime, '%Y-%m-%d') as day, {_STATISTICS} from bids group by day",
    "q16": f"""select channel, strftime(dateTime, '%Y-%m-%d') as day, max(strftime(dateTime, '%H:%M')) as minute,
        {_STATISTICS} from bids group by channel, day""",
    "q17": """select auction, strftime(dateTime, '%Y-%m-%d') as day, count(*) as total_bids,
        count(*) filter (where price < 10000) as rank1_bids,
        count(*) filter (where price >= 10000 and price < 1000000) as rank2_bids,
        count(*) filter (where price >= 1000000) as rank3_bids, min(price) as min_price, max(price) as max_price,
        avg(price) as avg_price, sum(price)::bigint as sum_price from bids group by all""",
    "q18": """select auction, bidder, price, channel, url, dateTime, extra from bids
        qualify row_number() over (partition by bidder, auction order by dateTime desc) = 1""",
    "q19": """select *, row_number() over best as rank_number from bids
        window best as (partition by auction order by price desc, bidder desc, channel desc, url desc)
        qualify rank_number <= 10""",
    "q20": """select b.*, itemName, description, initialBid, reserve, a.dateTime as auction_dateTime, expires, seller,
        category, a.extra as auction_extra from bids b join auctions a on b.auction = a.id where category = 10""",
    "q21": r"""select auction, bidder, price, channel, case when lower(channel) = 'apple' then '0'
        when lower(channel) = 'google' then '1' when lower(channel) = 'facebook' then '2'
        when lower(channel) = 'baidu' then '3' else regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) end as channel_id
        from bids where regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> ''
        or lower(channel) in ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """select auction, bidder, price, channel, split_part(url, '/', 4) as dir1, split_part(url, '/', 5) as dir2,
        split_part(url, '/', 6) as dir3 from bids""",
}
"""As NEXMark's repository has them; only what README.md says is restated differs."""

TABLES = frozenset({"q3", "q4", "q5", "q6", "q7", "q9", "q11", "q12", "q15", "q16", "q17", "q18", "q19"})
"""Of these the last record of each key counts."""

Rows = Counter[str]
"""Each row as JSON, and how many times it is there."""


class Answers:
    """What DuckDB makes of events."""

    def __init__(self, events: Iterable[Event]) -> None:
        tables: dict[str, list[dict[str, Any]]] = {"people": [], "auctions": [], "bids": []}
        for event in events:
            times = {
                name: datetime.fromisoformat(event.value[name])
                for name in ("dateTime", "expires")
                if name in event.value
            }
            tables[event.topic].append(event.value | {name: time.replace(tzinfo=None) for name, time in times.items()})
        tables["side"] = [{"key": int(key), **value} for key, value in SIDE_INPUT.items()]
        self._tables = {name: pa.Table.from_pylist(rows) for name, rows in tables.items()}

    def of(self, query: str) -> Rows:
        """The rows that the query has in the end."""
        with duckdb.connect() as database:
            for name, rows in self._tables.items():
                database.register(name, rows)
            return as_rows(database.sql(SQL[query]).to_arrow_table().to_pylist())


def as_rows(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Rows with their columns by name, whatever the order; numbers and times in one notation."""
    return Counter(json.dumps({name: _plain(each) for name, each in row.items()}, sort_keys=True) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if isinstance(value, Decimal):
        return float(value)
    return value


def rows_of(query: str, written: Iterable[tuple[Any, Any]]) -> Rows:
    """What a query has written, by keys and values, as rows of its SQL."""
    if query in TABLES:
        last = {json.dumps(key, default=str, sort_keys=True): (key, value) for key, value in written}
        written = [each for each in last.values() if each[1] is not None]
    return as_rows(row for key, value in written for row in sql_rows(query, key, value))


def sql_rows(query: str, key: Any, value: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """What one record of a query's topic is as rows of its SQL."""
    match query:
        case "q4" | "q6":  # by categories, by sellers
            return [{"category" if query == "q4" else "seller": key, **value}]
        case "q5":  # by windows, whose start is the key
            start = datetime.fromtimestamp(key / 1000, UTC)
            return [{"num": value["hot"]["num"], "auction": it, "start": start} for it in value["hot"]["auctions"]]
        case "q7":
            return value["highest"]
        case "q9":
            bid = value.pop("bid")
            renamed = {"bid_dateTime": bid.pop("dateTime"), "bid_extra": bid.pop("extra")}
            return [value | bid | renamed]
        case "q19":  # by auctions; the place in the list is the rank
            return [{"auction": int(key), "rank_number": nth, **bid} for nth, bid in enumerate(value["top"], 1)]
    return [value]
