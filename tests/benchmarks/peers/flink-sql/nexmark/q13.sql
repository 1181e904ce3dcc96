-- A look-up needs a database beside Kafka; a bid gets the row of its own time here.
CREATE TABLE side (
  key STRING, `value` STRING, written TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', WATERMARK FOR written AS written,
  PRIMARY KEY (key) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${side}', 'properties.bootstrap.servers' = '${brokers}',
  'scan.bounded.mode' = 'latest-offset', 'key.format' = 'raw', 'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);

CREATE TABLE q13 (auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP_LTZ(3), `value` STRING)
WITH (${stream});

INSERT INTO q13
SELECT b.auction, b.bidder, b.price, b.`dateTime`, s.`value`
FROM (SELECT *, CAST(MOD(auction, 10000) AS STRING) AS key FROM bids) b
JOIN side FOR SYSTEM_TIME AS OF b.`dateTime` AS s ON b.key = s.key;
