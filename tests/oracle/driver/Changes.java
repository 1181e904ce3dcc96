import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Streams that become tables, and tables that become streams: of the topics `in` and `other`, and of `users`, which is
 * read as a table; all are text to JSON {"v": number}. A join is ten times the one and once the other, 0 where there is
 * none.
 */
final class Changes {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    private final StreamsBuilder builder;

    private Changes(StreamsBuilder builder) {
        this.builder = builder;
    }

    /** Adds the steps of this name to a topology; the topics that they write. */
    static List<String> add(StreamsBuilder builder, String name) {
        Map<String, KStream<String, String>> sinks = new Changes(builder).made(name);
        sinks.forEach((topic, stream) -> stream.to(topic, Produced.with(TEXT, TEXT)));
        return new ArrayList<>(sinks.keySet());
    }

    private Map<String, KStream<String, String>> made(String name) {
        switch (name) {
            case "a table":
                KTable<String, String> table = kept(stream("in"), "kept");
                return Map.of("out", table.toStream(), "fitting", fitting(table).toStream());
            case "beside a table":
                KTable<String, String> beside = kept(stream("in"), "kept");
                return Map.of("out", joined(stream("other"), beside));
            case "beside its own table":
                KStream<String, String> own = stream("in");
                KTable<String, String> mine = kept(fitting(own), "kept");
                return Map.of("out", joined(own, mine));
            case "tables beside each other":
                KTable<String, String> left = kept(stream("in"), "kept");
                return Map.of("out", left.outerJoin(users(), Changes::both).toStream());
            case "counts of changes":
                return Map.of("out", counted(byNumber(fitting(users()).toStream()), "counted").toStream());
            case "counts of counts":
                KStream<String, String> counts = counted(stream("in"), "first").toStream();
                return Map.of("out", counted(byNumber(counts), "second").toStream(), "counts", counts);
            case "beside a count":
                KStream<String, String> all = stream("in");
                KTable<String, String> count = counted(all, "counted");
                return Map.of("out", joined(stream("other"), count), "own", joined(all, count));
            case "a count beside a table":
                KTable<String, String> many = counted(stream("in"), "counted");
                KTable<String, String> doubled = many.mapValues(value -> text(number(value) * 2));
                return Map.of("out", fitting(doubled).leftJoin(users(), Changes::both).toStream());
            case "foldings":
                KTable<String, String> folded = folded(stream("in"), "folded");
                KTable<String, String> fittingFolded = folded.filter((key, value) -> fits(thousandth(value)));
                KTable<String, String> one = folded.mapValues(Changes::thousandth);
                KTable<String, String> two =
                    folded.mapValues(value -> text(number(value) / 1000 * 100 + number(value) % 1000));
                return Map.of(
                    "out", one.toStream(),
                    "classes", two.toStream(),
                    "fitting", fittingFolded.mapValues(Changes::thousandth).toStream(),
                    "both", joined(stream("other"), one));
            case "a table of changes":
                KTable<String, String> changed = kept(fitting(users()).toStream(), "kept");
                return Map.of("out", joined(stream("other"), changed), "changes", changed.toStream());
            case "what fits beside a table":
                return Map.of("out", joined(fitting(stream("in")), users()));
            case "what fits beside a table of what fits":
                KTable<String, String> some = kept(fitting(stream("in")), "kept");
                return Map.of("out", joined(fitting(stream("other")), some));
            case "what fits of two counted":
                KStream<String, String> merged = fitting(stream("in")).merge(fitting(stream("other")));
                return Map.of("out", counted(merged, "counted").toStream());
            case "groups of a table":
                return Map.of("out", grouped(fitting(users()), "groups").toStream());
            case "groups of counts":
                KTable<String, String> ofCounts = counted(stream("in"), "first");
                return Map.of("out", grouped(ofCounts, "groups").toStream(), "counts", ofCounts.toStream());
            case "groups of tables beside each other":
                KTable<String, String> pairs = kept(stream("in"), "kept").outerJoin(users(), Changes::both);
                return Map.of("out", fitting(grouped(pairs, "groups")).toStream());
            case "groups of groups":
                KTable<String, String> groups = grouped(users(), "groups");
                return Map.of("out", grouped(groups, "again").toStream(), "groups", groups.toStream());
            default:
                throw new IllegalArgumentException(name);
        }
    }

    /**
     * By odd and even numbers, but for some that are in no group: a thousand times their sum, and how many they are. 0 is
     * in none, since Kafka Streams takes what an aggregate begins with for the row before the first one, and takes that out.
     */
    private static KTable<String, String> grouped(KTable<String, String> table, String store) {
        return table
            .groupBy(
                (key, value) ->
                    KeyValue.pair(
                        number(value) % 5 == 4 || number(value) == 0 ? null : String.valueOf(number(value) % 2),
                        value),
                Grouped.with(TEXT, TEXT))
            .aggregate(
                () -> text(0),
                (key, value, sum) -> text(number(sum) + 1000 * number(value) + 1),
                (key, value, sum) -> text(number(sum) - 1000 * number(value) - 1),
                store(store));
    }

    private KStream<String, String> stream(String topic) {
        return builder.stream(topic, Consumed.with(TEXT, TEXT));
    }

    private KTable<String, String> users() {
        return builder.table("users", Consumed.with(TEXT, TEXT), store("users"));
    }

    private static KTable<String, String> kept(KStream<String, String> stream, String store) {
        return stream.toTable(store(store));
    }

    private static KTable<String, String> counted(KStream<String, String> stream, String store) {
        return stream
            .groupByKey(Grouped.with(TEXT, TEXT))
            .aggregate(() -> text(0), (key, value, count) -> text(number(count) + 1), store(store));
    }

    /** A thousand times a number that depends on the order of the records, and how many there were. */
    private static KTable<String, String> folded(KStream<String, String> stream, String store) {
        return stream
            .groupByKey(Grouped.with(TEXT, TEXT))
            .aggregate(
                () -> text(6000),
                (key, value, state) -> {
                    long before = number(state);
                    return text((before / 1000 * 31 + number(value) & 0xFFFFF) * 1000 + before % 1000 + 1);
                },
                store(store));
    }

    private static String thousandth(String value) {
        return text(number(value) / 1000);
    }

    private static KTable<String, String> fitting(KTable<String, String> table) {
        return table.filter((key, value) -> fits(value));
    }

    private static KStream<String, String> fitting(KStream<String, String> stream) {
        return stream.filter((key, value) -> fits(value));
    }

    private static KStream<String, String> byNumber(KStream<String, String> stream) {
        return stream.selectKey((key, value) -> value == null ? null : String.valueOf(number(value) % 2));
    }

    private static KStream<String, String> joined(KStream<String, String> stream, KTable<String, String> table) {
        return stream.leftJoin(table, Changes::both, Joined.with(TEXT, TEXT, TEXT));
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
