-- OVER does not run on a table that changes; a rank does, and holds each seller's last ten as well.
CREATE TABLE q6 (seller BIGINT, average DOUBLE, PRIMARY KEY (seller) NOT ENFORCED) WITH (${table}, 'key.format' = 'json');

INSERT INTO q6
SELECT seller, AVG(CAST(final AS DOUBLE))
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY seller ORDER BY expires DESC, id DESC) AS nth
  FROM (
    SELECT a.id, a.seller, a.expires, MAX(b.price) AS final
    FROM auctions a JOIN bids b ON a.id = b.auction AND b.`dateTime` BETWEEN a.`dateTime` AND a.expires
    GROUP BY a.id, a.seller, a.expires
  )
)
WHERE nth <= 10
GROUP BY seller;
