import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/**
 * The stream `in` beside two tables with a history (KIP-889, KIP-914), `users`, which is read as one, and one that is made
 * of the stream `other`; all are text to JSON {"v": number}. A join is ten times the one and once the other, 0 where
 * there is none.
 */
final class Versions {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();
    private static final List<String> KEYS = List.of("a", "b", "c");
    private static final long LAST = 32;

    private Versions() {}

    /** Adds the steps, with this retention (ms), to a topology; the topics that they write. */
    static List<String> add(StreamsBuilder builder, long retention) {
        KTable<String, String> users =
            builder.table("users", Consumed.with(TEXT, TEXT), versioned("users", retention));
        KTable<String, String> kept =
            builder.stream("other", Consumed.with(TEXT, TEXT)).toTable(versioned("kept", retention));
        KStream<String, String> in = builder.stream("in", Consumed.with(TEXT, TEXT));
        Joined<String, String, String> texts = Joined.with(TEXT, TEXT, TEXT);
        in.join(users, Versions::both, texts).to("out", Produced.with(TEXT, TEXT));
        in.leftJoin(users, Versions::both, texts).to("left", Produced.with(TEXT, TEXT));
        in.leftJoin(kept, Versions::both, texts).to("kept", Produced.with(TEXT, TEXT));
        return List.of("out", "left", "kept");
    }

    /**
     * What each key of `users` has at each time: the value, and since when. Until when it is valid the store knows, and the
     * one around it that is asked here (MeteredVersionedKeyValueStore) leaves out.
     */
    static void store(TopologyTestDriver driver, ArrayNode found) {
        VersionedKeyValueStore<String, String> store = driver.getVersionedKeyValueStore("users");
        for (String key : KEYS) {
            for (long time = 0; time <= LAST; time++) {
                VersionedRecord<String> record = store.get(key, time);
                if (record != null) {
                    found.addObject()
                        .put("key", key)
                        .put("start", time)
                        .put("value", String.valueOf(number(record.value())))
                        .put("time", record.timestamp());
                }
            }
        }
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> versioned(String name, long retention) {
        return Materialized.<String, String>as(
                Stores.persistentVersionedKeyValueStore(name, Duration.ofMillis(retention)))
            .withKeySerde(TEXT)
            .withValueSerde(TEXT);
    }

    private static String both(String one, String other) {
        return JSON.createObjectNode().put("v", number(one) * 10 + number(other)).toString();
    }

    private static long number(String value) {
        try {
            return value == null ? 0 : JSON.readTree(value).get("v").asLong();
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }
}
