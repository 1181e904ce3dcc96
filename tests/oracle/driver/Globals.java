import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * The records of `in`, JSON {"a": number, "u": text or null}, beside what the global table `users`, JSON {"b": number},
 * has in `store` for their key, or for their `u`; as JSON {"a", "b"}.
 */
final class Globals {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    private Globals() {}

    /** From {"type": "inner" or "left", "on": "key" or "value"}. */
    static void add(StreamsBuilder builder, JsonNode asked) {
        GlobalKTable<String, String> users =
            builder.globalTable(
                "users",
                Consumed.with(TEXT, TEXT),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("store")
                    .withKeySerde(TEXT)
                    .withValueSerde(TEXT));
        KStream<String, String> records = builder.stream("in", Consumed.with(TEXT, TEXT));
        KeyValueMapper<String, String, String> on =
            asked.get("on").asText().equals("key") ? (key, value) -> key : (key, value) -> user(value);
        KStream<String, String> found =
            asked.get("type").asText().equals("left")
                ? records.leftJoin(users, on, Topologies::both)
                : records.join(users, on, Topologies::both);
        found.to("out", Produced.with(TEXT, TEXT));
    }

    private static String user(String record) {
        try {
            JsonNode user = record == null ? null : JSON.readTree(record).get("u");
            return user == null || user.isNull() ? null : user.asText();
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }
}
