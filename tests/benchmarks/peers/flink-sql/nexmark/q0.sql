CREATE TABLE q0 (auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP_LTZ(3), extra STRING) WITH (${stream});

INSERT INTO q0 SELECT auction, bidder, price, `dateTime`, extra FROM bids;
