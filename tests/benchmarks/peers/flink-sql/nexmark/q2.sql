CREATE TABLE q2 (auction BIGINT, price BIGINT) WITH (${stream});

INSERT INTO q2 SELECT auction, price FROM bids WHERE MOD(auction, 123) = 0;
