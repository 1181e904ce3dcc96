import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * A join by a foreign key of the tables `left`, JSON {"v", "f"}, and `right`, JSON {"v"}, on `f`: JSON {"v", "w"}, the
 * numbers of both, from `store` to `out`. {"type": "inner" or "left", "filtered": true}: with filters on both sides, of
 * rows whose number 3 does not divide.
 */
final class ForeignKeys {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    private ForeignKeys() {}

    static void add(StreamsBuilder builder, JsonNode asked) {
        boolean filtered = asked.get("filtered").asBoolean();
        KTable<String, String> left = table(builder, "left", filtered);
        KTable<String, String> right = table(builder, "right", filtered);
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> store =
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("store")
                .withKeySerde(TEXT)
                .withValueSerde(TEXT);
        KTable<String, String> joined =
            asked.get("type").asText().equals("left")
                ? left.leftJoin(right, ForeignKeys::named, ForeignKeys::both, store)
                : left.join(right, ForeignKeys::named, ForeignKeys::both, store);
        joined.toStream().to("out", Produced.with(TEXT, TEXT));
    }

    private static KTable<String, String> table(StreamsBuilder builder, String topic, boolean filtered) {
        KTable<String, String> table =
            builder.table(
                topic,
                Consumed.with(TEXT, TEXT),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(topic + "-store")
                    .withKeySerde(TEXT)
                    .withValueSerde(TEXT));
        return filtered ? table.filter((key, value) -> read(value).get("v").asLong() % 3 != 0) : table;
    }

    private static String named(String left) {
        JsonNode key = read(left).get("f");
        return key.isNull() ? null : key.asText();
    }

    private static String both(String left, String right) {
        JsonNode number = right == null ? JSON.nullNode() : read(right).get("v");
        return JSON.createObjectNode().put("v", read(left).get("v").asLong()).set("w", number).toString();
    }

    private static JsonNode read(String value) {
        try {
            return JSON.readTree(value);
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }
}
