CREATE TABLE q3 (name STRING, city STRING, state STRING, id BIGINT) WITH (${stream});

INSERT INTO q3
SELECT p.name, p.city, p.state, a.id
FROM auctions a JOIN people p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA');
