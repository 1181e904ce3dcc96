-- A join of windows: NEXMark's, which compares times, would keep all bids for ever.
CREATE TABLE q7 (auction BIGINT, price BIGINT, bidder BIGINT, `dateTime` TIMESTAMP_LTZ(3), extra STRING) WITH (${stream});

INSERT INTO q7
SELECT b.auction, b.price, b.bidder, b.`dateTime`, b.extra
FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)) b
JOIN (
  SELECT MAX(price) AS price, window_start, window_end
  FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) m
ON b.window_start = m.window_start AND b.window_end = m.window_end AND b.price = m.price;
