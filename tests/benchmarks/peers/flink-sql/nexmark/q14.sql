CREATE TABLE q14 (
  auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), bidTimeType STRING, `dateTime` TIMESTAMP_LTZ(3), extra STRING,
  c_counts BIGINT
) WITH (${stream});

INSERT INTO q14
SELECT auction, bidder, 0.908 * price,
  CASE
    WHEN HOUR(`dateTime`) BETWEEN 8 AND 18 THEN 'dayTime'
    WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END,
  `dateTime`, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', ''))
FROM bids
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;
