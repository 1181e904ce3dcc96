import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** The applications: their topologies, what they read, and the stores that they have. */
enum Application {
    /** Orders, JSON with an amount, summed and counted for each key as JSON; one key-value store. */
    TOTALS(List.of("orders"), List.of(new Store("totals", Store.Kind.KEY_VALUE))) {
        @Override
        Topology topology(String id) {
            StreamsBuilder builder = new StreamsBuilder();
            builder.stream(id + "-orders", Consumed.with(Serdes.String(), Serdes.String()))
                .groupByKey()
                .aggregate(
                    () -> "{\"total\":0,\"n\":0}",
                    (key, order, state) -> sum(state, number(order, "amount")),
                    Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("totals")
                        .withKeySerde(Serdes.String())
                        .withValueSerde(Serdes.String()));
            return builder.build();
        }
    },

    /** Events (string, long) and readings (long, string), in stores of every kind. */
    STORES(
        List.of("events", "readings"),
        List.of(
            new Store("counts", Store.Kind.KEY_VALUE),
            new Store("latest", Store.Kind.KEY_VALUE),
            new Store("tumbling", Store.Kind.WINDOW),
            new Store("hopping", Store.Kind.WINDOW),
            new Store("sessions", Store.Kind.SESSION))) {
        @Override
        Topology topology(String id) {
            StreamsBuilder builder = new StreamsBuilder();
            KGroupedStream<String, Long> events =
                builder.stream(id + "-events", Consumed.with(Serdes.String(), Serdes.Long())).groupByKey();
            events.count(
                Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts")
                    .withKeySerde(Serdes.String())
                    .withValueSerde(Serdes.Long()));
            events.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofMinutes(10)))
                .count(
                    Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("tumbling")
                        .withKeySerde(Serdes.String())
                        .withValueSerde(Serdes.Long())
                        .withRetention(Duration.ofMinutes(60)));
            events.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofMinutes(1), Duration.ofMinutes(10)))
                .aggregate(
                    () -> "{\"total\":0,\"n\":0}",
                    (key, amount, state) -> sum(state, amount),
                    (key, one, other) -> merged(one, other),
                    Materialized.<String, String, SessionStore<Bytes, byte[]>>as("sessions")
                        .withKeySerde(Serdes.String())
                        .withValueSerde(Serdes.String())
                        .withRetention(Duration.ofMinutes(60)));
            KTable<Long, String> readings =
                builder.table(
                    id + "-readings",
                    Consumed.with(Serdes.Long(), Serdes.String()),
                    Materialized.<Long, String, KeyValueStore<Bytes, byte[]>>as("latest")
                        .withKeySerde(Serdes.Long())
                        .withValueSerde(Serdes.String()));
            readings.toStream()
                .groupByKey()
                .windowedBy(
                    TimeWindows.ofSizeAndGrace(Duration.ofMinutes(5), Duration.ofMinutes(5))
                        .advanceBy(Duration.ofMinutes(1)))
                .aggregate(
                    () -> "{\"total\":0,\"n\":0}",
                    // A reading that is a deletion removes the windows that it is in.
                    (key, reading, state) -> reading == null ? null : sum(state, reading.length()),
                    Materialized.<Long, String, WindowStore<Bytes, byte[]>>as("hopping")
                        .withKeySerde(Serdes.Long())
                        .withValueSerde(Serdes.String())
                        .withRetention(Duration.ofMinutes(40)));
            return builder.build();
        }
    };

    private static final ObjectMapper JSON = new ObjectMapper();

    final List<Store> stores;
    private final List<String> inputs;

    Application(List<String> inputs, List<Store> stores) {
        this.inputs = inputs;
        this.stores = stores;
    }

    abstract Topology topology(String id);

    /** The topics that the application of this id reads. */
    List<String> inputs(String id) {
        return inputs.stream().map(name -> id + "-" + name).toList();
    }

    private static String sum(String state, long amount) {
        return state(number(state, "total") + amount, number(state, "n") + 1);
    }

    private static String merged(String one, String other) {
        return state(number(one, "total") + number(other, "total"), number(one, "n") + number(other, "n"));
    }

    private static String state(long total, long n) {
        return JSON.createObjectNode().put("total", total).put("n", n).toString();
    }

    private static long number(String document, String field) {
        try {
            JsonNode found = JSON.readTree(document).get(field);
            return found.asLong();
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }
}
