import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Properties;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.LogAndContinueExceptionHandler;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.processor.internals.assignment.Standbys;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Answers what Kafka Streams makes of records: a case a line on standard input, its answer a line on standard output.
 *
 * <p>A case is {"topology": {...}, "records": [{"topic", "key", "value", "time"}]}, see Topologies; keys and values are
 * text or null, times in ms; {"advance": ms} among the records moves the clock, which begins at 0 unless
 * processors say otherwise; with "leavesOut" in the topology records that can't be read are left out. The answer is
 * {"sinks": {topic: [{"key", "value", "time"}]}, "store": [...], "dropped": n}: all records of each sink in order (keys
 * as hexadecimal bytes), the store's contents at the end, how many records were dropped, and as "failed" whether a
 * handler has ended it before the last record. {"standbys": {...}} is
 * answered by Standbys. Ends with its input.
 */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Driver() {}

    public static void main(String[] argv) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            out.println(asked.has("standbys") ? Standbys.placed(asked.get("standbys")) : answer(asked));
        }
    }

    private static String answer(JsonNode asked) {
        Properties config = new Properties();
        config.put("application.id", "driver");
        config.put("bootstrap.servers", "none:9092");
        config.put("statestore.cache.max.bytes", "0");
        // Otherwise joins of streams look for closed windows once a second by the clock, which stands still here.
        config.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        if (asked.get("topology").has("leavesOut")) {
            config.put("deserialization.exception.handler", LogAndContinueExceptionHandler.class);
        }
        if (asked.get("topology").has("handlers")) {
            Handlers.configure(config);
        }
        Topologies made = Topologies.of(asked.get("topology"));
        Instant begin = Instant.ofEpochMilli(asked.at("/topology/processors/start").asLong());
        boolean failed = false;
        try (TopologyTestDriver driver = new TopologyTestDriver(made.topology, config, begin)) {
            for (JsonNode each : asked.get("records")) {
                if (each.has("advance")) {
                    driver.advanceWallClockTime(Duration.ofMillis(each.get("advance").asLong()));
                    continue;
                }
                TestInputTopic<String, String> topic =
                    driver.createInputTopic(
                        each.get("topic").asText(), new StringSerializer(), new StringSerializer());
                if (asked.get("topology").has("streams") || asked.get("topology").has("stages")) {
                    StreamJoins.lookAgain(driver);
                }
                try {
                    topic.pipeInput(
                        new TestRecord<>(
                            text(each.get("key")),
                            text(each.get("value")),
                            new RecordHeaders(),
                            each.get("time").asLong()));
                } catch (StreamsException error) {
                    if (!asked.get("topology").has("handlers")) {
                        throw error;
                    }
                    failed = true;
                    break;
                }
            }
            ObjectNode answer = JSON.createObjectNode();
            for (String topic : made.sinks) {
                sink(driver, topic, answer.withObject("/sinks").putArray(topic));
            }
            made.store(driver, answer.putArray("store"));
            answer.put("dropped", dropped(driver));
            answer.put("failed", failed);
            return answer.toString();
        }
    }

    private static void sink(TopologyTestDriver driver, String topic, ArrayNode found) {
        TestOutputTopic<byte[], byte[]> sink =
            driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        for (TestRecord<byte[], byte[]> each : sink.readRecordsToList()) {
            byte[] key = each.key();
            byte[] value = each.value();
            found.addObject()
                .put("key", key == null ? null : java.util.HexFormat.of().formatHex(key))
                .put("value", value == null ? null : new String(value, StandardCharsets.UTF_8))
                .put("time", each.timestamp());
        }
    }

    private static long dropped(TopologyTestDriver driver) {
        return driver.metrics().values().stream()
            .filter(metric -> metric.metricName().name().equals("dropped-records-total"))
            .mapToLong(metric -> ((Number) metric.metricValue()).longValue())
            .sum();
    }

    private static String text(JsonNode node) {
        return node == null || node.isNull() ? null : node.asText();
    }
}
