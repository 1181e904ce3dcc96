import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Joins by a foreign key between other tables than those of topics: `left`, `right` and `third` are tables of JSON {"v":
 * number, "f": a key or null}, `clicks` is a stream of the same. Each writes `out`.
 *
 * <ul>
 *   <li>chain: what left and right give, and third by the key that right has.
 *   <li>other side: left, and what right and third give.
 *   <li>beside: what left and right give, and third by the same key; where the sum is odd.
 *   <li>of a join: what left and third give by the same key, and right by the key that third has.
 *   <li>counted: left, and how many clicks each key has.
 *   <li>stream: what left and right give as a stream with ten times v, and that as a table again.
 *   <li>asked: clicks, and what left and right give for their keys.
 * </ul>
 */
final class ForeignChains {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    private ForeignChains() {}

    static List<String> add(StreamsBuilder builder, String name) {
        KTable<String, String> left = table(builder, "left");
        switch (name) {
            case "chain" ->
                out(
                    left.join(table(builder, "right"), key("f"), taking("w", "g"), kept("first"))
                        .leftJoin(table(builder, "third"), key("g"), taking("x", "h"), kept("second")));
            case "other side" -> {
                KTable<String, String> other =
                    table(builder, "right").leftJoin(table(builder, "third"), key("f"), taking("x", "h"), kept("first"));
                out(left.join(other, key("f"), ForeignChains::beside, kept("second")));
            }
            case "beside" ->
                out(
                    left.join(table(builder, "right"), key("f"), taking("w", "g"), kept("first"))
                        .leftJoin(table(builder, "third"), taking("x", "h"))
                        .filter((key, value) -> number(value, "w") % 2 == 1));
            case "of a join" ->
                out(
                    left.leftJoin(table(builder, "third"), taking("x", "h"))
                        .filter((key, value) -> number(value, "v") % 3 != 0, kept("some"))
                        .leftJoin(table(builder, "right"), key("h"), taking("w", "g"), kept("first")));
            case "counted" -> {
                KTable<String, String> counts =
                    clicks(builder)
                        .groupByKey(Grouped.with(TEXT, TEXT))
                        .aggregate(
                            () -> "{\"v\":0,\"f\":null}",
                            (key, value, sum) -> write(read(sum).put("v", number(sum, "v") + 1)),
                            kept("counts"));
                out(left.leftJoin(counts, key("f"), taking("w", "g"), kept("first")));
            }
            case "stream" ->
                out(
                    left.leftJoin(table(builder, "right"), key("f"), taking("w", "g"), kept("first"))
                        .toStream()
                        .mapValues(value -> value == null ? null : write(read(value).put("v", 10 * number(value, "v"))))
                        .toTable(kept("again")));
            case "asked" ->
                clicks(builder)
                    .leftJoin(
                        left.join(table(builder, "right"), key("f"), taking("w", "g"), kept("first")), taking("x", "h"))
                    .to("out", Produced.with(TEXT, TEXT));
            default -> throw new IllegalArgumentException(name);
        }
        return List.of("out");
    }

    private static void out(KTable<String, String> table) {
        table.toStream().to("out", Produced.with(TEXT, TEXT));
    }

    private static KStream<String, String> clicks(StreamsBuilder builder) {
        return builder.stream("clicks", Consumed.with(TEXT, TEXT));
    }

    private static KTable<String, String> table(StreamsBuilder builder, String topic) {
        return builder.table(topic, Consumed.with(TEXT, TEXT), kept(topic + "-store"));
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept(String store) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(store)
            .withKeySerde(TEXT)
            .withValueSerde(TEXT);
    }

    private static Function<String, String> key(String field) {
        return value -> read(value).get(field).isNull() ? null : read(value).get(field).asText();
    }

    /** The left row, and of the right one its number and its key by these names. */
    private static ValueJoiner<String, String, String> taking(String number, String key) {
        return (left, right) -> {
            ObjectNode row = read(left);
            row.set(number, right == null ? JSON.nullNode() : read(right).get("v"));
            row.set(key, right == null ? JSON.nullNode() : read(right).get("f"));
            return write(row);
        };
    }

    /** The left row, and of the right one what that has of a third. */
    private static String beside(String left, String right) {
        ObjectNode row = read(left);
        row.set("w", read(right).get("v"));
        row.set("x", read(right).get("x"));
        return write(row);
    }

    private static long number(String value, String field) {
        return read(value).get(field).asLong();
    }

    private static ObjectNode read(String value) {
        try {
            return (ObjectNode) JSON.readTree(value);
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }

    private static String write(JsonNode value) {
        return value.toString();
    }
}
