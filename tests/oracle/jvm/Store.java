import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedWriter;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreType;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ValueAndTimestamp;

/** A store that can be asked for all that it holds, through interactive queries. */
record Store(String name, Kind kind) {
    enum Kind { KEY_VALUE, WINDOW, SESSION }

    private static final ObjectMapper JSON = new ObjectMapper();

    /** Writes every record as a line of JSON: store, key, value; timestamp, start and end (ms) where it has them. */
    void dump(KafkaStreams streams, String application, BufferedWriter out) throws IOException {
        switch (kind) {
            case KEY_VALUE -> {
                var store = open(streams, QueryableStoreTypes.<Object, Object>timestampedKeyValueStore());
                try (KeyValueIterator<Object, ValueAndTimestamp<Object>> records = store.all()) {
                    while (records.hasNext()) {
                        KeyValue<Object, ValueAndTimestamp<Object>> each = records.next();
                        line(out, application, each.key, each.value.value(), each.value.timestamp(), null);
                    }
                }
            }
            case WINDOW -> {
                var store = open(streams, QueryableStoreTypes.<Object, Object>timestampedWindowStore());
                try (KeyValueIterator<Windowed<Object>, ValueAndTimestamp<Object>> records = store.all()) {
                    while (records.hasNext()) {
                        KeyValue<Windowed<Object>, ValueAndTimestamp<Object>> each = records.next();
                        line(out, application, each.key.key(), each.value.value(), each.value.timestamp(), each.key);
                    }
                }
            }
            case SESSION -> {
                var store = open(streams, QueryableStoreTypes.<Object, Object>sessionStore());
                try (KeyValueIterator<Windowed<Object>, Object> records = store.fetch(null, null)) {
                    while (records.hasNext()) {
                        KeyValue<Windowed<Object>, Object> each = records.next();
                        line(out, application, each.key.key(), each.value, null, each.key);
                    }
                }
            }
        }
    }

    private <T> T open(KafkaStreams streams, QueryableStoreType<T> type) {
        return streams.store(StoreQueryParameters.fromNameAndType(name, type));
    }

    private void line(
            BufferedWriter out, String application, Object key, Object value, Long timestamp, Windowed<Object> windowed)
            throws IOException {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("application", application);
        shown.put("store", name);
        shown.put("key", key);
        shown.put("value", value);
        if (timestamp != null) {
            shown.put("timestamp", timestamp);
        }
        if (windowed != null) {
            shown.put("start", windowed.window().start());
            shown.put("end", windowed.window().end());
        }
        out.write(JSON.writeValueAsString(shown));
        out.newLine();
    }
}
