CREATE TABLE q4 (category BIGINT, average DOUBLE, PRIMARY KEY (category) NOT ENFORCED) WITH (${table}, 'key.format' = 'json');

INSERT INTO q4
SELECT category, AVG(CAST(final AS DOUBLE))
FROM (
  SELECT a.category, MAX(b.price) AS final
  FROM auctions a JOIN bids b ON a.id = b.auction AND b.`dateTime` BETWEEN a.`dateTime` AND a.expires
  GROUP BY a.id, a.category
)
GROUP BY category;
