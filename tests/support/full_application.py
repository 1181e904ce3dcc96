"""A resource in which every field of the spec is said."""

from __future__ import annotations

FULL = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: orders, namespace: shop, uid: "1234", resourceVersion: "5", generation: 3, labels: {a: b}}
spec:
  replicas: 2
  applicationId: orders_v2
  image: registry/streams:1
  suspend: true
  kafka:
    bootstrapServers: "kafka-0:9092, kafka-1.kafka:9092,[::1]:9092"
    config: {linger.ms: 5, security.protocol: SASL_SSL, check.crcs: true}
    secretRef: {name: orders-kafka}
  internalTopics:
    setup: automatic
    replicationFactor: 3
    config: {segment.bytes: 1000000}
    overrides: {totals-changelog: {segment.ms: 60000}, by-user-repartition: {retention.ms: -1}}
    deletionPolicy: Delete
  processing:
    streamThreads: 2
    commitInterval: 1m30s
    maxBatchRecords: 1000
    onDeserializationError: {deadLetter: {topic: broken}}
  state: {storage: {size: 10Gi, storageClassName: fast}, cleanupDelay: 1h}
  queries:
    access: {token: {secretRef: {name: orders-queries, key: password}}}
    tls: {secretRef: {name: orders-tls}}
  spark: {master: "local[2]", config: {spark.ui.enabled: false}}
  topology:
    sources:
      - {name: orders, topic: orders, key: {format: json, schema: "id BIGINT"}, timestamp: ts,
         value: {format: json, schema: "user STRING, amount DOUBLE, ts TIMESTAMP"}}
      - {name: refunds, topic: refunds, key: {format: json, schema: "id BIGINT"},
         value: {format: json, schema: "user STRING, amount DOUBLE, ts TIMESTAMP"}}
      - {name: users, topic: users, value: {format: json, schema: "name STRING"}, table: {store: users}}
    steps:
      - {name: paid, from: orders, where: "AMOUNT > 0 and _key.id > 5",
         select: {user: user, cents: "cast(amount as bigint)"}}
      - {name: back, from: refunds, select: {cents: "cast(-amount as bigint)", user: user}}
      - {name: all, merge: [paid, back]}
      - {name: by-user, from: all, keyBy: user}
      - {name: totals, from: by-user, aggregate: {total: sum(cents), n: count(*)}, store: totals}
      - {name: often, from: by-user, window: {tumbling: {size: 1m, grace: 10s}, retention: 1d},
         aggregate: {n: count(*)}, store: often, suppress: untilWindowCloses}
      - {name: overlapping, from: by-user, window: {hopping: {size: 1m, advance: 10s}}, aggregate: {n: count(*)},
         store: overlapping}
      - {name: spans, from: often, where: n > 1, select: {n: n, of: _window_start, to: _window_end}}
      - {name: mean, from: totals, where: n > 1, select: {value: total / n}}
      - {name: named, from: users, where: name is not null}
    sinks:
      - {from: mean, topic: means, key: {format: string}, value: {format: double}}
      - {from: mean, topic: means}
      - {from: named, topic: named}
      - {from: spans, topic: spans}
  template:
    resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 2Gi, cpu: 2}}
    env: [{name: A, value: b}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    nodeSelector: {disk: ssd}
    tolerations: [{key: a, operator: Exists, effect: NoSchedule}]
    affinity: {nodeAffinity: {anything: 1}}
    serviceAccountName: streams
    annotations: {a: b}
  restartNonce: 4
status: {state: RUNNING}
"""
