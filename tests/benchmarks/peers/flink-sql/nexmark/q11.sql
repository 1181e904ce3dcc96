CREATE TABLE q11 (bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP_LTZ(3), endtime TIMESTAMP_LTZ(3)) WITH (${stream});

INSERT INTO q11
SELECT bidder, COUNT(*), CAST(window_start AS TIMESTAMP_LTZ(3)), CAST(window_end AS TIMESTAMP_LTZ(3))
FROM TABLE(SESSION(TABLE bids PARTITION BY bidder, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end;
