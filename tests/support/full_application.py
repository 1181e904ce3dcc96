"""A resource in which every field of the spec is said."""

from __future__ import annotations

FULL = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: orders, namespace: shop, uid: "1234", resourceVersion: "5", generation: 3, labels: {a: b}}
spec:
  replicas: 2
  autoscaling: {minReplicas: 2, maxReplicas: 4, targetCatchUp: 1m, stabilization: 10m}
  applicationId: orders_v2
  image: registry/streams:1
  suspend: true
  paused: true
  reset: {nonce: 2, to: {offsets: {orders: {"0": 120}}}, sources: [orders], internalTopics: Keep, dryRun: true}
  kafka:
    bootstrapServers: "kafka-0:9092, kafka-1.kafka:9092,[::1]:9092"
    config: {linger.ms: 5, security.protocol: SASL_SSL, check.crcs: true}
    secretRef: {name: orders-kafka}
    offsetReset: 1h30m
    schemaRegistry: {url: "https://registry:8081", config: {proxy: "http://proxy:3128"}, secretRef: {name: registry},
      autoRegister: false}
  internalTopics:
    setup: automatic
    replicationFactor: 3
    config: {segment.bytes: 1000000}
    overrides: {totals-changelog: {segment.ms: 60000}, by-user-repartition: {retention.ms: -1}}
    deletionPolicy: Delete
  processing:
    streamThreads: 2
    commitInterval: 1m30s
    pollDuration: 250ms
    maxTaskIdle: 20ms
    maxBatchRecords: 1000
    metricsRecordingLevel: DEBUG
    onDeserializationError: {deadLetter: {topic: broken}}
    onProductionError: {deadLetter: {topic: refused}}
  code: {configMap: orders-code-1}
  state: {storage: {size: 10Gi, storageClassName: fast}, cleanupDelay: 1h, snapshots: {url: "s3://bucket/orders",
    interval: 1m30s, keep: 3, secretRef: {name: orders-snapshots}},
    rocksdb: {memory: 256Mi, writeBufferSize: 8Mi, blockSize: 16Ki, bloomFilterBits: 12, compression: zstd,
      compaction: universal, maxBackgroundJobs: 4}}
  queries:
    access: {token: {secretRef: {name: orders-queries, key: password}}}
    tls: {secretRef: {name: orders-tls}}
  spark: {master: "local[2]", config: {spark.ui.enabled: false}}
  topology:
    sources:
      - {name: orders, topic: orders, key: {format: json, schema: "id BIGINT"}, timestamp: ts, offsetReset: latest,
         value: {format: json, schema: "user STRING, amount DOUBLE, ts TIMESTAMP"}}
      - {name: refunds, topic: refunds, key: {format: json, schema: "id BIGINT"}, offsetReset: none,
         value: {format: json, schema: "user STRING, amount DOUBLE, ts TIMESTAMP"}}
      - {name: people, topic: users, key: {format: string}, value: {format: json, schema: "name STRING"}}
    steps:
      - {name: paid, from: orders, where: "AMOUNT > 0 and _key.id > 5",
         select: {user: user, cents: "cast(amount as bigint)"}}
      - {name: back, from: refunds, select: {cents: "cast(-amount as bigint)", user: user}}
      - {name: letters, from: paid, flatMap: {explode: "split(user, '')", as: letter}}
      - {name: sized, from: letters, split: [{name: large, where: cents > 100}, {name: small, where: cents > 0}],
         default: rest}
      - {name: seen, from: sized.small, peek: {log: "concat(_key.id, ' ', letter)", level: debug, atMost: 5,
         metric: cents, value: cents}}
      - {name: parted, merge: [sized.large, sized.rest]}
      - {name: marked, from: paid, headers: {user: user}}
      - {name: once, from: marked, dedupe: {within: 10m, by: "concat(_key.id, user)"}}
      - {name: handled, from: marked, process: {python: "rules:Alerts", key: STRING, value: "n BIGINT, last TIMESTAMP",
         stores: {alerts: {key: STRING, value: "n BIGINT"}, plain: {key: BIGINT, value: "at DATE"}}}}
      - {name: all, merge: [paid, back]}
      - {name: by-user, from: all, keyBy: user}
      - {name: all-again, from: all, keyBy: user}
      - {name: totals, from: by-user, aggregate: {total: sum(cents), n: count(*)}, store: totals}
      - {name: often, from: by-user, window: {tumbling: {size: 1m, grace: 10s}, retention: 1d},
         aggregate: {n: count(*)}, store: often, suppress: untilWindowCloses}
      - {name: overlapping, from: by-user, window: {hopping: {size: 1m, advance: 10s}}, aggregate: {n: count(*)},
         store: overlapping}
      - {name: around, from: by-user, window: {sliding: {timeDifference: 1m, grace: 10s}, retention: 1h},
         aggregate: {n: count(*)}, store: around}
      - {name: visits, from: by-user, window: {session: {gap: 5m, grace: 1m}}, aggregate: {n: count(*)}, store: visits}
      - {name: enriched, from: by-user, join: {table: users, type: left, select: {name: users.name}}}
      - {name: near, from: by-user, join: {stream: all-again, type: outer, within: {before: 5m, after: 1m}, grace: 1m,
         select: {later: '`all-again`.cents'}}}
      - {name: close, from: by-user, join: {stream: all-again, within: 5m, select: {later: '`all-again`.cents'}}}
      - {name: spans, from: often, where: n > 1, select: {n: n, of: _window_start, to: _window_end}}
      - {name: mean, from: totals, where: n > 1, select: {value: total / n}}
      - {name: users, from: people, toTable: {store: users}}
      - {name: past, from: people, toTable: {store: past, historyRetention: 1h}}
      - {name: changes, from: users, toStream: {}}
      - {name: calm, from: totals, toStream: {suppress: {within: 10s, buffer: {records: 1000, bytes: 1000000,
         full: fail}}}}
      - {name: named, from: users, where: name is not null}
    sinks:
      - {from: mean, topic: means, key: {format: string}, value: {format: double}}
      - {from: mean, topic: means}
      - {from: named, topic: named}
      - {from: changes, topic: changes}
      - {from: calm, topic: calm}
      - {from: spans, topic: spans}
      - {from: parted, topic: parted}
      - {from: marked, topicBy: "concat('marked-', user)", topics: [marked-a, marked-b], key: {format: json}}
      - {from: marked, topicBy: "concat('marked-', user)"}
      - {from: once, topic: once, partitionBy: "if(user = 'all', 0, null)"}
      - {from: seen, topic: small}
      - {from: enriched, topic: enriched}
      - {from: paid, topic: paid, value: {format: avro}}
  topologyChange: allow
  template:
    resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 2Gi, cpu: 2}}
    env: [{name: A, value: b}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    nodeSelector: {disk: ssd}
    tolerations: [{key: a, operator: Exists, effect: NoSchedule}]
    affinity: {nodeAffinity: {anything: 1}}
    serviceAccountName: streams
    annotations: {a: b}
    labels: {team: shop, shop.example/tier: gold}
    imagePullSecrets: [{name: registry}]
    priorityClassName: streams
    topologySpreadConstraints:
      - {maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3,
         labelSelector: {matchLabels: {team: shop}, matchExpressions: [{key: a, operator: In, values: [b]}]},
         nodeAffinityPolicy: Honor, nodeTaintsPolicy: Honor}
    volumes:
      - {name: rules, configMap: {name: rules, items: [{key: a, path: b, mode: 292}], defaultMode: 292, optional: true}}
      - {name: password, secret: {secretName: password, items: [{key: a, path: b}], defaultMode: 256, optional: false}}
      - {name: both, projected: {sources: [{configMap: {name: a}}]}}
      - {name: scratch, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
      - {name: shared, persistentVolumeClaim: {claimName: models, readOnly: true}}
      - {name: own, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}}
      - {name: certificate, csi: {driver: csi.example, fsType: ext4, readOnly: true, volumeAttributes: {a: b},
         nodePublishSecretRef: {name: c}}}
      - {name: about, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
    volumeMounts:
      - {name: rules, mountPath: /mnt/rules.json, subPath: rules.json, readOnly: true}
      - {name: password, mountPath: /mnt/password}
      - {name: both, mountPath: /mnt/both}
      - {name: scratch, mountPath: /mnt/scratch}
      - {name: shared, mountPath: /mnt/shared}
      - {name: own, mountPath: /mnt/own}
      - {name: certificate, mountPath: /mnt/certificate}
      - {name: about, mountPath: /mnt/about}
    terminationGracePeriodSeconds: 120
    securityContext: {runAsUser: 2000, runAsGroup: 0, fsGroup: 3000, supplementalGroups: [4000], runAsNonRoot: true,
      fsGroupChangePolicy: Always, seccompProfile: {type: Localhost, localhostProfile: a.json}}
  progressDeadline: 20m
  rollback: automatic
  nodeLoss: {forceDeleteAfter: 5m}
  networkPolicy:
    enabled: true
    from:
      - {podSelector: {matchLabels: {a: b}}, namespaceSelector: {matchExpressions: [{key: a, operator: Exists}]}}
      - {ipBlock: {cidr: 10.1.0.0/16, except: [10.1.2.0/24]}}
  disruptionBudget: {enabled: true, maxUnavailable: 25%}
  restartNonce: 4
  restartOnChange: [secrets, code]
status: {state: RUNNING}
"""
