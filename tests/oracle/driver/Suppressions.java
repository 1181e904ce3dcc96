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
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Changes that wait for later ones of their key (untilTimeLimit), of the topics `in` and `other`, and of `users`, which
 * is read as a table; all are text to JSON {"v": number}. A join is ten times the one and once the other, 0 where there
 * is none.
 */
final class Suppressions {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    private final StreamsBuilder builder;

    private Suppressions(StreamsBuilder builder) {
        this.builder = builder;
    }

    /** Adds the steps of this name to a topology; the topics that they write. */
    static List<String> add(StreamsBuilder builder, String name) {
        Map<String, KStream<String, String>> sinks = new Suppressions(builder).made(name);
        sinks.forEach((topic, stream) -> stream.to(topic, Produced.with(TEXT, TEXT)));
        return new ArrayList<>(sinks.keySet());
    }

    private Map<String, KStream<String, String>> made(String name) {
        switch (name) {
            case "a table":
                KTable<String, String> users = users();
                return Map.of(
                    "out", held(users, 4, BufferConfig.unbounded()),
                    "fitting", held(users.filter((key, value) -> fits(value)), 4, BufferConfig.unbounded()),
                    "one", held(users, 9, BufferConfig.maxRecords(1)),
                    "two", held(users, 9, BufferConfig.maxRecords(2).emitEarlyWhenFull()));
            case "counts":
                KTable<String, String> counts = counted(stream("in"));
                KStream<String, String> every = counts.toStream();
                KStream<String, String> calm = held(counts, 4, BufferConfig.unbounded());
                return Map.of("out", calm, "met", every.merge(calm));
            case "tables beside each other":
                KTable<String, String> left = stream("in").toTable(store("kept"));
                KTable<String, String> both = left.outerJoin(users(), Suppressions::both, store("both"));
                return Map.of("out", held(both, 3, BufferConfig.unbounded()));
            case "a table of what waited":
                KTable<String, String> late = held(users(), 3, BufferConfig.unbounded()).toTable(store("late"));
                return Map.of(
                    "out", late.toStream(),
                    "beside", stream("other").leftJoin(late, Suppressions::both, Joined.with(TEXT, TEXT, TEXT)));
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private static KStream<String, String> held(KTable<String, String> table, long within, BufferConfig<?> buffer) {
        return table.suppress(Suppressed.untilTimeLimit(Duration.ofMillis(within), buffer)).toStream();
    }

    private KStream<String, String> stream(String topic) {
        return builder.stream(topic, Consumed.with(TEXT, TEXT));
    }

    private KTable<String, String> users() {
        return builder.table("users", Consumed.with(TEXT, TEXT), store("users"));
    }

    private static KTable<String, String> counted(KStream<String, String> stream) {
        return stream
            .groupByKey(Grouped.with(TEXT, TEXT))
            .aggregate(() -> text(0), (key, value, count) -> text(number(count) + 1), store("counted"));
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> store(String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name)
            .withKeySerde(TEXT)
            .withValueSerde(TEXT);
    }

    private static boolean fits(String value) {
        return value != null && number(value) % 3 != 0;
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
