CREATE TABLE q5 (auction BIGINT, num BIGINT, `start` TIMESTAMP_LTZ(3)) WITH (${stream});

CREATE TEMPORARY VIEW counts AS
SELECT auction, COUNT(*) AS num, window_start, window_end
FROM TABLE(HOP(TABLE bids, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
GROUP BY auction, window_start, window_end;

INSERT INTO q5
SELECT c.auction, c.num, CAST(c.window_start AS TIMESTAMP_LTZ(3))
FROM counts c
JOIN (SELECT MAX(num) AS most, window_start, window_end FROM counts GROUP BY window_start, window_end) m
ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.most;
