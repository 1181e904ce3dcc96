import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
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
    final List<String> sinks;
    private final Kind kind;

    private enum Kind {
        KEYS,
        WINDOWS,
        SESSIONS,
        VERSIONS,
        STATELESS
    }

    private Topologies(Topology topology, Kind kind) {
        this(topology, kind, List.of("out"));
    }

    private Topologies(StreamsBuilder builder, List<String> sinks) {
        this(builder.build(), Kind.STATELESS, sinks);
    }

    private Topologies(Topology topology, Kind kind, List<String> sinks) {
        this.topology = topology;
        this.kind = kind;
        this.sinks = sinks;
    }

    /**
     * From {"windows": {"size", "advance", "grace", "retention"[, "offset"]}, {"difference", "grace", "retention"} or {"gap",
     * "grace", "retention"}, "suppress": true}, in ms; without windows an aggregate by key, and without suppress every
     * change is passed on, or with "within" (ms) the last of each window's changes within that time. With "behind": true the steps of ToldWindows follow. With "trail": true the state is that of Folding.TRAIL, with "restarting": true that of
     * Folding.RESTARTING. With "elements": true the records are {"items": [number]}, and each number is aggregated. Or
     * {"stream": name}, see Streams. Or {"join": "inner" or "left"}: the records of `in` beside those of the table
     * `users`, JSON {"b": number}, as JSON {"a", "b"}. Or {"streams": {…}}, see StreamJoins, or {"tables": table}, see
     * Tables. Or {"dedupe": {…}}, see Dedupe. Or {"global": {…}}, see Globals. Or {"foreign": {…}},
     * see ForeignKeys. Or {"chains": name}, see ForeignChains. Or {"changes": name}, see Changes. Or {"stages": name},
     * see Stages. Or {"processors": {…}}, see Processors. Or {"held": name}, see Suppressions. Or {"versions": ms}, see
     * Versions. Or {"handlers": true}, see Handlers. Or {"cogroup": kind}, see Cogroups.
     */
    static Topologies of(JsonNode asked) {
        StreamsBuilder builder = new StreamsBuilder();
        if (asked.has("stream")) {
            List<String> sinks = Streams.add(builder, asked.get("stream").asText());
            return new Topologies(builder.build(), Kind.STATELESS, sinks);
        }
        if (asked.has("streams")) {
            StreamJoins.add(builder, asked.get("streams"));
            return new Topologies(builder.build(), Kind.STATELESS);
        }
        if (asked.has("processors")) {
            Processors.add(builder, asked.get("processors"));
            return new Topologies(builder.build(), Kind.STATELESS);
        }
        if (asked.has("dedupe")) {
            Dedupe.add(builder, asked.get("dedupe"));
            return new Topologies(builder.build(), Kind.STATELESS);
        }
        if (asked.has("foreign")) {
            ForeignKeys.add(builder, asked.get("foreign"));
            return new Topologies(builder.build(), Kind.KEYS);
        }
        if (asked.has("chains")) {
            List<String> sinks = ForeignChains.add(builder, asked.get("chains").asText());
            return new Topologies(builder.build(), Kind.STATELESS, sinks);
        }
        if (asked.has("changes")) {
            List<String> sinks = Changes.add(builder, asked.get("changes").asText());
            return new Topologies(builder.build(), Kind.STATELESS, sinks);
        }
        if (asked.has("held")) {
            List<String> sinks = Suppressions.add(builder, asked.get("held").asText());
            return new Topologies(builder.build(), Kind.STATELESS, sinks);
        }
        if (asked.has("versions")) {
            List<String> sinks = Versions.add(builder, asked.get("versions").asLong());
            return new Topologies(builder.build(), Kind.VERSIONS, sinks);
        }
        if (asked.has("handlers")) {
            return new Topologies(builder, Handlers.add(builder));
        }
        if (asked.has("cogroup")) {
            return new Topologies(builder, Cogroups.add(builder, asked.get("cogroup").asText()));
        }
        if (asked.has("stages")) {
            List<String> sinks = Stages.add(builder, asked.get("stages").asText());
            return new Topologies(builder.build(), Kind.STATELESS, sinks);
        }
        if (asked.has("tables")) {
            List<String> sinks = Tables.add(builder, asked.get("tables"));
            return new Topologies(builder.build(), Kind.STATELESS, sinks);
        }
        if (asked.has("global")) {
            Globals.add(builder, asked.get("global"));
            return new Topologies(builder.build(), Kind.KEYS);
        }
        if (asked.has("join")) {
            return joined(builder, asked.get("join").asText());
        }
        KStream<String, String> in = builder.stream("in", Consumed.with(TEXT, TEXT));
        KGroupedStream<String, String> grouped =
            (asked.has("elements") ? in.flatMapValues(value -> Streams.elements(value, "a")) : in).groupByKey(
                Grouped.with(TEXT, TEXT));
        JsonNode windows = asked.get("windows");
        Folding folding =
            asked.has("trail")
                ? Folding.TRAIL
                : asked.has("restarting") ? Folding.RESTARTING
                : new Folding(
                    () -> state(0, 0),
                    (key, value, state) -> sum(state, value),
                    (key, one, other) -> merged(one, other));
        if (windows == null) {
            grouped
                .aggregate(
                    folding.zero(),
                    folding.add(),
                    Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("store")
                        .withKeySerde(TEXT)
                        .withValueSerde(TEXT))
                .toStream()
                .to("out", Produced.with(TEXT, TEXT));
            return new Topologies(builder.build(), Kind.KEYS);
        }
        if (windows.has("gap")) {
            return sessions(builder, grouped, windows, folding, asked);
        }
        KTable<Windowed<String>, String> counted = windowed(grouped, windows)
            .aggregate(
                folding.zero(),
                folding.add(),
                Materialized.<String, String, WindowStore<Bytes, byte[]>>as("store")
                    .withKeySerde(TEXT)
                    .withValueSerde(TEXT)
                    .withRetention(ms(windows, "retention")));
        if (asked.has("suppress")) {
            counted = counted.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()));
        }
        if (asked.has("within")) {
            counted = counted.suppress(Suppressed.untilTimeLimit(ms(asked, "within"), BufferConfig.unbounded()));
        }
        long size = windows.get(windows.has("difference") ? "difference" : "size").asLong();
        Serde<Windowed<String>> keys = WindowedSerdes.timeWindowedSerdeFrom(String.class, size);
        if (asked.has("behind")) {
            return new Topologies(builder, ToldWindows.add(counted, keys));
        }
        counted.toStream().to("out", Produced.with(keys, TEXT));
        return new Topologies(builder.build(), Kind.WINDOWS);
    }

    private static TimeWindowedKStream<String, String> windowed(
        KGroupedStream<String, String> grouped, JsonNode windows) {
        Duration grace = ms(windows, "grace");
        if (windows.has("difference")) {
            return grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(windows, "difference"), grace));
        }
        if (windows.has("offset")) {
            return grouped.windowedBy(
                new OffsetWindows(
                    windows.get("size").asLong(),
                    windows.get("advance").asLong(),
                    windows.get("grace").asLong(),
                    windows.get("offset").asLong()));
        }
        return grouped.windowedBy(
            TimeWindows.ofSizeAndGrace(ms(windows, "size"), grace).advanceBy(ms(windows, "advance")));
    }

    private static Topologies sessions(
        StreamsBuilder builder,
        KGroupedStream<String, String> grouped,
        JsonNode windows,
        Folding folding,
        JsonNode asked) {
        KTable<Windowed<String>, String> counted =
            grouped
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(windows, "gap"), ms(windows, "grace")))
                .aggregate(
                    folding.zero(),
                    folding.add(),
                    folding.merge(),
                    Materialized.<String, String, SessionStore<Bytes, byte[]>>as("store")
                        .withKeySerde(TEXT)
                        .withValueSerde(TEXT)
                        .withRetention(ms(windows, "retention")));
        if (asked.has("suppress")) {
            counted = counted.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()));
        }
        if (asked.has("within")) {
            counted = counted.suppress(Suppressed.untilTimeLimit(ms(asked, "within"), BufferConfig.unbounded()));
        }
        Serde<Windowed<String>> keys = WindowedSerdes.sessionWindowedSerdeFrom(String.class);
        if (asked.has("behind")) {
            return new Topologies(builder, ToldWindows.add(counted, keys));
        }
        counted.toStream().to("out", Produced.with(keys, TEXT));
        return new Topologies(builder.build(), Kind.SESSIONS);
    }

    private static Topologies joined(StreamsBuilder builder, String kind) {
        KTable<String, String> users =
            builder.table(
                "users",
                Consumed.with(TEXT, TEXT),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("store")
                    .withKeySerde(TEXT)
                    .withValueSerde(TEXT));
        KStream<String, String> records = builder.stream("in", Consumed.with(TEXT, TEXT));
        Joined<String, String, String> texts = Joined.with(TEXT, TEXT, TEXT);
        KStream<String, String> found =
            kind.equals("left")
                ? records.leftJoin(users, Topologies::both, texts)
                : records.join(users, Topologies::both, texts);
        found.to("out", Produced.with(TEXT, TEXT));
        return new Topologies(builder.build(), Kind.KEYS);
    }

    /** What the store holds: key, value, time, and start where it holds windows. */
    void store(TopologyTestDriver driver, ArrayNode found) {
        if (kind == Kind.STATELESS) {
            return;
        }
        if (kind == Kind.VERSIONS) {
            Versions.store(driver, found);
            return;
        }
        if (kind == Kind.SESSIONS) {
            SessionStore<String, String> store = driver.getSessionStore("store");
            // A store of sessions shows those of a key, or of keys between two.
            try (KeyValueIterator<Windowed<String>, String> all = store.fetch("", "~")) {
                while (all.hasNext()) {
                    KeyValue<Windowed<String>, String> each = all.next();
                    found.addObject()
                        .put("key", each.key.key())
                        .put("start", each.key.window().start())
                        .put("value", each.value)
                        .put("time", each.key.window().end());
                }
            }
            return;
        }
        if (kind == Kind.KEYS) {
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

    private static String merged(String one, String other) {
        try {
            JsonNode first = JSON.readTree(one);
            JsonNode second = JSON.readTree(other);
            return state(
                first.get("total").asLong() + second.get("total").asLong(),
                first.get("n").asLong() + second.get("n").asLong());
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }

    static String both(String record, String user) {
        try {
            JsonNode b = user == null ? null : JSON.readTree(user).get("b");
            return JSON.createObjectNode()
                .put("a", JSON.readTree(record).get("a").asLong())
                .set("b", b == null ? JSON.nullNode() : b)
                .toString();
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }

    private static String state(long total, long n) {
        return JSON.createObjectNode().put("total", total).put("n", n).toString();
    }
}
