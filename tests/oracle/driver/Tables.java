import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Tables over tables, text to JSON {"v": number}: topics read as tables, filters, maps and joins of these.
 *
 * <p>A table is {"table": topic}; {"filter": table}, rows whose number 3 does not divide; {"double": table}; or {"join":
 * "inner", "left" or "outer", "left": table, "right": table}, ten times the left number and the right one, 0 where there
 * is no row. Each table's changes go to a topic of their own: `out-0` those of the one that is made first. {"made":
 * number} is that table once more. A join that is "swapped" has its right side made first. All changes of all tables go
 * to `all`, too.
 */
final class Tables {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<String> JSON_TEXT = Serdes.serdeFrom(new StringSerializer(), (topic, data) -> json(data));

    private final StreamsBuilder builder;
    private final List<String> sinks = new ArrayList<>();
    private final List<KTable<String, String>> tables = new ArrayList<>();
    private KStream<String, String> all;

    private Tables(StreamsBuilder builder) {
        this.builder = builder;
    }

    /** Adds a table, and those that it is made of, to a topology; the topics that they write. */
    static List<String> add(StreamsBuilder builder, JsonNode asked) {
        Tables tables = new Tables(builder);
        tables.made(asked);
        tables.all.to("all", Produced.with(TEXT, TEXT));
        tables.sinks.add("all");
        return tables.sinks;
    }

    private KTable<String, String> made(JsonNode asked) {
        if (asked.has("made")) {
            return tables.get(asked.get("made").asInt());
        }
        KTable<String, String> table = table(asked);
        tables.add(table);
        String sink = "out-" + sinks.size();
        sinks.add(sink);
        KStream<String, String> changes = table.toStream();
        changes.to(sink, Produced.with(TEXT, TEXT));
        all = all == null ? changes : all.merge(changes);
        return table;
    }

    private KTable<String, String> table(JsonNode asked) {
        if (asked.has("table")) {
            String topic = asked.get("table").asText();
            return builder.table(
                topic,
                Consumed.with(TEXT, JSON_TEXT),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(topic + "-store")
                    .withKeySerde(TEXT)
                    .withValueSerde(JSON_TEXT));
        }
        if (asked.has("filter")) {
            return made(asked.get("filter")).filter((key, value) -> number(value) % 3 != 0);
        }
        if (asked.has("double")) {
            return made(asked.get("double")).mapValues(value -> text(number(value) * 2));
        }
        KTable<String, String> right = asked.has("swapped") ? made(asked.get("right")) : null;
        KTable<String, String> left = made(asked.get("left"));
        right = right == null ? made(asked.get("right")) : right;
        return joined(asked.get("join").asText(), left, right);
    }

    static <K> KTable<K, String> joined(String kind, KTable<K, String> left, KTable<K, String> right) {
        switch (kind) {
            case "inner":
                return left.join(right, Tables::both);
            case "left":
                return left.leftJoin(right, Tables::both);
            case "outer":
                return left.outerJoin(right, Tables::both);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static String json(byte[] data) {
        if (data == null) {
            return null;
        }
        try {
            JSON.readTree(data);
            return new String(data, StandardCharsets.UTF_8);
        } catch (IOException exception) {
            throw new SerializationException("not JSON", exception);
        }
    }

    private static String both(String left, String right) {
        return text(number(left) * 10 + number(right));
    }

    static long number(String value) {
        try {
            return value == null ? 0 : JSON.readTree(value).get("v").asLong();
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }

    static String text(long number) {
        return JSON.createObjectNode().put("v", number).toString();
    }
}
