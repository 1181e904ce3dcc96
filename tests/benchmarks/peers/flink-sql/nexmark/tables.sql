-- What every query begins with. Records of a partition come in the order of their times.
CREATE TABLE people (
  id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,
  `dateTime` TIMESTAMP_LTZ(3), extra STRING, WATERMARK FOR `dateTime` AS `dateTime`
) WITH ('topic' = '${people}', ${source});

CREATE TABLE auctions (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP_LTZ(3),
  expires TIMESTAMP_LTZ(3), seller BIGINT, category BIGINT, extra STRING, WATERMARK FOR `dateTime` AS `dateTime`
) WITH ('topic' = '${auctions}', ${source});

CREATE TABLE bids (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP_LTZ(3), extra STRING,
  WATERMARK FOR `dateTime` AS `dateTime`
) WITH ('topic' = '${bids}', ${source});

