"""Partitions of keys, compared with the Java client's own class and with where librdkafka puts records."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streams_runtime.jvm.jars import broker_jars
from streams_runtime.jvm.java import find_java
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.producer.partitioner import murmur2, partition_for
from streams_runtime.kafka.types import TopicPartition, TopicSpec

pytestmark = pytest.mark.integration

JAVA = """
import java.util.*;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
class Partitions {
    public static void main(String[] args) {
        Scanner in = new Scanner(System.in);
        StringBuilder out = new StringBuilder();
        while (in.hasNextLine()) {
            byte[] key = Base64.getDecoder().decode(in.nextLine());
            out.append(Utils.murmur2(key));
            for (int n : new int[] {1, 2, 3, 7, 50, 1000})
                out.append(' ').append(BuiltInPartitioner.partitionForKey(key, n));
            out.append('\\n');
        }
        System.out.print(out);
    }
}
"""


def random_keys(count: int) -> list[bytes]:
    source = random.Random(7)
    return [source.randbytes(source.randrange(0, 40)) for _ in range(count)]


def test_every_key_is_placed_as_the_java_client_places_it(tmp_path: Path) -> None:
    import base64

    program = tmp_path / "Partitions.java"
    program.write_text(JAVA)
    keys = random_keys(5000)
    classpath = ":".join(str(jar) for jar in broker_jars())
    done = subprocess.run(
        [find_java(), "-Xmx256m", "-cp", classpath, program],
        input="\n".join(base64.b64encode(key).decode() for key in keys),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    expected = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    found = [(murmur2(key), *(partition_for(key, n) for n in (1, 2, 3, 7, 50, 1000))) for key in keys]
    assert found == expected


def test_records_are_where_the_partitioner_says(broker: Any, namespace: str) -> None:
    properties = client_properties(broker.bootstrap_servers, {})
    admin = Admin(properties)
    admin.create_topics([TopicSpec(namespace, 7)])
    keys = [key for key in random_keys(3000) if key]
    producer = BatchProducer(properties, "test")
    producer.send(namespace, keys, [None] * len(keys), [1] * len(keys))
    producer.flush()
    producer.close()
    expected = dict.fromkeys((TopicPartition(namespace, number) for number in range(7)), 0)
    for key in keys:
        expected[TopicPartition(namespace, partition_for(key, 7))] += 1
    assert admin.end_offsets(list(expected)) == expected
