import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * The records of the stream `in`, JSON {"a": number}, without those that lie close to one with their id.
 *
 * <p>As Kafka Streams' users write it, with a window store of the ids; but a duplicate does not renew what is there.
 */
final class Dedupe {
    private static final String STORE = "once-dedupe-store";
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    private Dedupe() {}

    /** From {"within", "retention"} in ms; with "by": true the id is the number, else the key. */
    static void add(StreamsBuilder builder, JsonNode asked) {
        long within = asked.get("within").asLong();
        Duration retention = Duration.ofMillis(asked.get("retention").asLong());
        KStream<String, String> in = builder.stream("in", Consumed.with(TEXT, TEXT));
        once(builder, in, STORE, within, retention, asked.has("by")).to("out", Produced.with(TEXT, TEXT));
    }

    /** The records of a stream without those that lie close to one with their id, which is kept in the store. */
    static KStream<String, String> once(
            StreamsBuilder builder,
            KStream<String, String> stream,
            String store,
            long within,
            Duration retention,
            boolean byNumber) {
        builder.addStateStore(
            Stores.windowStoreBuilder(
                Stores.persistentWindowStore(store, retention, Duration.ofMillis(within), false),
                TEXT,
                Serdes.Long()));
        return stream.processValues(() -> new FirstOnly(store, within, byNumber), store);
    }

    private static final class FirstOnly extends ContextualFixedKeyProcessor<String, String, String> {
        private final String store;
        private final long within;
        private final boolean byNumber;
        private WindowStore<String, Long> seen;

        FirstOnly(String store, long within, boolean byNumber) {
            this.store = store;
            this.within = within;
            this.byNumber = byNumber;
        }

        @Override
        public void init(FixedKeyProcessorContext<String, String> context) {
            super.init(context);
            seen = context.getStateStore(store);
        }

        @Override
        public void process(FixedKeyRecord<String, String> record) {
            String id = byNumber ? number(record.value()) : record.key();
            if (id == null) {
                context().forward(record);
                return;
            }
            long time = record.timestamp();
            try (WindowStoreIterator<Long> near = seen.fetch(id, Math.max(time - within, 0), time + within)) {
                if (near.hasNext()) {
                    return;
                }
            }
            seen.put(id, time, time);
            context().forward(record);
        }
    }

    private static String number(String value) {
        try {
            return value == null ? null : JSON.readTree(value).get("a").asText();
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }
}
