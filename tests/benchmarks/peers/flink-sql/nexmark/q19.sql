CREATE TABLE q19 (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP_LTZ(3), extra STRING,
  rank_number BIGINT, PRIMARY KEY (auction, rank_number) NOT ENFORCED
) WITH (${table}, 'key.format' = 'json');

INSERT INTO q19
SELECT auction, bidder, price, channel, url, `dateTime`, extra, rank_number
FROM (
  SELECT *,
    ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, bidder DESC, channel DESC, url DESC) AS rank_number
  FROM bids
)
WHERE rank_number <= 10;
