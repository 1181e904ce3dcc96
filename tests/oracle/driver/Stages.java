import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Merges and joins behind joins, dedupes and tables' changes: over the table `base` and the streams `in` and `other`,
 * all text to JSON {"v": number}. A join is ten times the one and once the other, 0 where there is none.
 */
final class Stages {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();
    private static final long WITHIN = 4;

    private final StreamsBuilder builder;

    private final KTable<String, String> base;
    private final KStream<String, String> in;
    private final KStream<String, String> other;

    private Stages(StreamsBuilder builder) {
        this.builder = builder;
        base = builder.table("base", Consumed.with(TEXT, TEXT), store("base"));
        in = builder.stream("in", Consumed.with(TEXT, TEXT));
        other = builder.stream("other", Consumed.with(TEXT, TEXT));
    }

    /** Adds the steps of this name to a topology; the topics that they write. */
    static List<String> add(StreamsBuilder builder, String name) {
        Map<String, KStream<String, String>> sinks = new Stages(builder).made(name);
        sinks.forEach((topic, stream) -> stream.to(topic, Produced.with(TEXT, TEXT)));
        return new ArrayList<>(sinks.keySet());
    }

    private Map<String, KStream<String, String>> made(String name) {
        switch (name) {
            case "a join and another topic":
                KStream<String, String> enriched = beside(in, base, true);
                return Map.of("out", enriched.merge(other));
            case "a dedupe and its own stream":
                KStream<String, String> odd = in.filter((key, value) -> fits(value));
                KStream<String, String> first = once(in, "once");
                KStream<String, String> even = in.mapValues(Stages::doubled);
                return Map.of("out", first.merge(even).merge(odd));
            case "elements":
                KStream<String, String> twice = in.flatMapValues(Stages::andNext);
                KStream<String, String> some = once(twice, "once");
                KStream<String, String> rest = twice.filter((key, value) -> fits(value));
                return Map.of("out", rest.merge(some).merge(in));
            case "merges of merges":
                KStream<String, String> some1 = once(in, "once").merge(other);
                KStream<String, String> again = once(some1, "again");
                KStream<String, String> every = in.merge(again).merge(beside(some1, base, false));
                return Map.of("out", every, "counts", counted(every, "counted").toStream());
            case "streams beside each other":
                KStream<String, String> both = met(in, other, "inner");
                KStream<String, String> firsts = once(both, "once");
                return Map.of("out", in.merge(both).merge(firsts));
            case "changes of a table":
                KStream<String, String> fitting = base.filter((key, value) -> fits(value)).toStream();
                KStream<String, String> changes = base.toStream();
                KStream<String, String> counts = counted(in, "counted").toStream();
                return Map.of("out", changes.merge(in).merge(fitting).merge(counts));
            case "streams behind stages":
                KStream<String, String> right = once(other, "right");
                KStream<String, String> pairs = met(beside(in, base, false), right, "inner");
                return Map.of("out", pairs, "again", met(pairs, in, "inner"));
            case "tables behind streams":
                KStream<String, String> results = met(in, other, "inner");
                KTable<String, String> latest = results.toTable(store("latest"));
                return Map.of(
                    "out", beside(results, base, true),
                    "latest", latest.toStream(),
                    "counts", counted(results, "counted").toStream());
            case "left joins behind stages":
                KStream<String, String> right1 = once(other, "right");
                KStream<String, String> pairs1 = met(beside(in, base, false), right1, "left");
                return Map.of("out", pairs1, "again", met(pairs1, in, "outer"));
            case "outer joins behind stages":
                KStream<String, String> first1 = once(in, "first");
                KStream<String, String> pairs2 = met(first1, beside(other, base, true), "outer");
                KStream<String, String> again1 = met(other, pairs2, "left");
                return Map.of("out", pairs2.merge(in).merge(other), "again", again1);
            case "tables behind outer joins":
                KStream<String, String> results1 = met(in, other, "outer");
                KTable<String, String> latest1 = results1.toTable(store("latest"));
                return Map.of(
                    "out", beside(results1, base, true),
                    "latest", latest1.toStream(),
                    "counts", counted(results1, "counted").toStream());
            case "a stream beside itself":
                KStream<String, String> odd1 = in.filter((key, value) -> fits(value));
                KStream<String, String> even1 = in.mapValues(Stages::doubled);
                KStream<String, String> pairs3 = met(even1, odd1, "inner");
                KStream<String, String> again2 = met(odd1, even1, "outer");
                return Map.of("out", pairs3, "again", again2, "third", met(in, odd1, "left"));
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private KStream<String, String> once(KStream<String, String> stream, String store) {
        return Dedupe.once(builder, stream, store, WITHIN, Duration.ofMillis(2 * WITHIN + 1), false);
    }

    private static KStream<String, String> beside(
            KStream<String, String> stream, KTable<String, String> table, boolean left) {
        Joined<String, String, String> texts = Joined.with(TEXT, TEXT, TEXT);
        return left ? stream.leftJoin(table, Stages::both, texts) : stream.join(table, Stages::both, texts);
    }

    private static KStream<String, String> met(
            KStream<String, String> left, KStream<String, String> right, String kind) {
        JoinWindows windows = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(WITHIN));
        StreamJoined<String, String, String> texts = StreamJoined.with(TEXT, TEXT, TEXT);
        switch (kind) {
            case "inner":
                return left.join(right, Stages::both, windows, texts);
            case "left":
                return left.leftJoin(right, Stages::both, windows, texts);
            default:
                return left.outerJoin(right, Stages::both, windows, texts);
        }
    }

    private static KTable<String, String> counted(KStream<String, String> stream, String store) {
        return stream
            .groupByKey(Grouped.with(TEXT, TEXT))
            .aggregate(() -> text(0), (key, value, count) -> text(number(count) + 1), store(store));
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> store(String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name)
            .withKeySerde(TEXT)
            .withValueSerde(TEXT);
    }

    private static boolean fits(String value) {
        return value != null && number(value) % 3 != 0;
    }

    private static String doubled(String value) {
        return value == null ? null : text(number(value) * 2);
    }

    private static List<String> andNext(String value) {
        return value == null ? List.of() : List.of(value, text(number(value) + 1));
    }

    private static String both(String one, String other) {
        return text(number(one) * 10 + number(other));
    }

    private static long number(String value) {
        try {
            return value == null ? 0 : JSON.readTree(value).get("v").asLong();
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }

    private static String text(long number) {
        return JSON.createObjectNode().put("v", number).toString();
    }
}
