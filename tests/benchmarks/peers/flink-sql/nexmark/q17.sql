CREATE TABLE q17 (
  auction BIGINT, `day` STRING, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT,
  min_price BIGINT, max_price BIGINT, avg_price DOUBLE, sum_price BIGINT, PRIMARY KEY (auction, `day`) NOT ENFORCED
) WITH (${table}, 'key.format' = 'json');

INSERT INTO q17
SELECT auction, `day`, COUNT(*),
  COUNT(*) FILTER (WHERE price < 10000), COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000),
  COUNT(*) FILTER (WHERE price >= 1000000), MIN(price), MAX(price), AVG(CAST(price AS DOUBLE)), SUM(price)
FROM (SELECT auction, price, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') AS `day` FROM bids)
GROUP BY auction, `day`;
