CREATE TABLE q1 (auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), `dateTime` TIMESTAMP_LTZ(3), extra STRING)
WITH (${stream});

INSERT INTO q1 SELECT auction, bidder, 0.908 * price, `dateTime`, extra FROM bids;
