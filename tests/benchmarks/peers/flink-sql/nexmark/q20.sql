CREATE TABLE q20 (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP_LTZ(3), extra STRING,
  itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, auction_dateTime TIMESTAMP_LTZ(3),
  expires TIMESTAMP_LTZ(3), seller BIGINT, category BIGINT, auction_extra STRING
) WITH (${stream});

INSERT INTO q20
SELECT b.*, a.itemName, a.description, a.initialBid, a.reserve, a.`dateTime`, a.expires, a.seller, a.category, a.extra
FROM bids b JOIN auctions a ON b.auction = a.id
WHERE a.category = 10;
