CREATE TABLE q16 (
  channel STRING, `day` STRING, `minute` STRING,
  total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT,
  total_bidders BIGINT, rank1_bidders BIGINT, rank2_bidders BIGINT, rank3_bidders BIGINT,
  total_auctions BIGINT, rank1_auctions BIGINT, rank2_auctions BIGINT, rank3_auctions BIGINT,
  PRIMARY KEY (channel, `day`) NOT ENFORCED
) WITH (${table}, 'key.format' = 'json');

INSERT INTO q16
SELECT channel, `day`, MAX(`minute`),
  COUNT(*), COUNT(*) FILTER (WHERE nth = 1), COUNT(*) FILTER (WHERE nth = 2), COUNT(*) FILTER (WHERE nth = 3),
  COUNT(DISTINCT bidder), COUNT(DISTINCT bidder) FILTER (WHERE nth = 1),
  COUNT(DISTINCT bidder) FILTER (WHERE nth = 2), COUNT(DISTINCT bidder) FILTER (WHERE nth = 3),
  COUNT(DISTINCT auction), COUNT(DISTINCT auction) FILTER (WHERE nth = 1),
  COUNT(DISTINCT auction) FILTER (WHERE nth = 2), COUNT(DISTINCT auction) FILTER (WHERE nth = 3)
FROM (
  SELECT channel, bidder, auction,
    DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') AS `day`, DATE_FORMAT(`dateTime`, 'HH:mm') AS `minute`,
    CASE WHEN price < 10000 THEN 1 WHEN price < 1000000 THEN 2 ELSE 3 END AS nth
  FROM bids
)
GROUP BY channel, `day`;
