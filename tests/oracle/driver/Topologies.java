import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Topologies over the topic `in`, text to JSON {"a": number}, that write JSON {"total", "n"} to `out` from `store`.
 *
 * <p>`total` sums the numbers, and `n` counts the records, those without a value included where Kafka Streams' own
 * count() counts them.
 */
final class Topologies {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    final Topology topology;
    private final boolean windowed;

    private Topologies(Topology topology, boolean windowed) {
        this.topology = topology;
        this.windowed = windowed;
    }

    /**
     * From {"windows": {"size", "advance", "grace", "retention"}, "suppress": true}, in ms; without windows an aggregate
     * by key, and without suppress every change is passed on.
     */
    static Topologies of(JsonNode asked) {
        StreamsBuilder builder = new StreamsBuilder();
        KGroupedStream<String, String> grouped = builder.stream("in", Consumed.with(TEXT, TEXT)).groupByKey();
        JsonNode windows = asked.get("windows");
        if (windows == null) {
            grouped
                .aggregate(
                    () -> state(0, 0),
                    (key, value, state) -> sum(state, value),
                    Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("store")
                        .withKeySerde(TEXT)
                        .withValueSerde(TEXT))
                .toStream()
                .to("out", Produced.with(TEXT, TEXT));
            return new Topologies(builder.build(), false);
        }
        TimeWindows declared =
            TimeWindows.ofSizeAndGrace(ms(windows, "size"), ms(windows, "grace")).advanceBy(ms(windows, "advance"));
        KTable<Windowed<String>, String> counted = grouped
            .windowedBy(declared)
            .aggregate(
                () -> state(0, 0),
                (key, value, state) -> sum(state, value),
                Materialized.<String, String, WindowStore<Bytes, byte[]>>as("store")
                    .withKeySerde(TEXT)
                    .withValueSerde(TEXT)
                    .withRetention(ms(windows, "retention")));
        if (asked.has("suppress")) {
            counted = counted.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()));
        }
        counted
            .toStream()
            .to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, declared.size()), TEXT));
        return new Topologies(builder.build(), true);
    }

    /** What the store holds: key, value, time, and start where it holds windows. */
    void store(TopologyTestDriver driver, ArrayNode found) {
        if (!windowed) {
            KeyValueStore<String, ValueAndTimestamp<String>> store = driver.getTimestampedKeyValueStore("store");
            try (KeyValueIterator<String, ValueAndTimestamp<String>> all = store.all()) {
                while (all.hasNext()) {
                    KeyValue<String, ValueAndTimestamp<String>> each = all.next();
                    found.addObject()
                        .put("key", each.key)
                        .put("value", each.value.value())
                        .put("time", each.value.timestamp());
                }
            }
            return;
        }
        WindowStore<String, ValueAndTimestamp<String>> store = driver.getTimestampedWindowStore("store");
        try (KeyValueIterator<Windowed<String>, ValueAndTimestamp<String>> all = store.all()) {
            while (all.hasNext()) {
                KeyValue<Windowed<String>, ValueAndTimestamp<String>> each = all.next();
                found.addObject()
                    .put("key", each.key.key())
                    .put("start", each.key.window().start())
                    .put("value", each.value.value())
                    .put("time", each.value.timestamp());
            }
        }
    }

    private static Duration ms(JsonNode windows, String name) {
        return Duration.ofMillis(windows.get(name).asLong());
    }

    private static String sum(String state, String value) {
        try {
            JsonNode before = JSON.readTree(state);
            long amount = value == null ? 0 : JSON.readTree(value).get("a").asLong();
            return state(before.get("total").asLong() + amount, before.get("n").asLong() + 1);
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }

    private static String state(long total, long n) {
        return JSON.createObjectNode().put("total", total).put("n", n).toString();
    }
}
