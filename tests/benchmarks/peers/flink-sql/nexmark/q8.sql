CREATE TABLE q8 (id BIGINT, name STRING, starttime TIMESTAMP_LTZ(3)) WITH (${stream});

INSERT INTO q8
SELECT p.id, p.name, CAST(p.window_start AS TIMESTAMP_LTZ(3))
FROM (
  SELECT id, name, window_start, window_end
  FROM TABLE(TUMBLE(TABLE people, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY id, name, window_start, window_end
) p
JOIN (
  SELECT seller, window_start, window_end
  FROM TABLE(TUMBLE(TABLE auctions, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY seller, window_start, window_end
) a
ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end;
