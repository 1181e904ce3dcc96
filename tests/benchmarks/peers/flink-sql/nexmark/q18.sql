CREATE TABLE q18 (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP_LTZ(3), extra STRING,
  PRIMARY KEY (bidder, auction) NOT ENFORCED
) WITH (${table}, 'key.format' = 'json');

INSERT INTO q18
SELECT auction, bidder, price, channel, url, `dateTime`, extra
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS nth FROM bids)
WHERE nth <= 1;
