CREATE TABLE orders (`user` STRING, amount BIGINT, ts BIGINT) WITH ('topic' = '${orders}', ${source});

CREATE TABLE totals (`user` STRING, total BIGINT, n BIGINT, PRIMARY KEY (`user`) NOT ENFORCED)
WITH (${table}, 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');

INSERT INTO totals SELECT `user`, SUM(amount), COUNT(*) FROM orders WHERE amount >= 0 GROUP BY `user`;
