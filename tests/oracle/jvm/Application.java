import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StreamPartitioner;
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
    },

    /** Orders, JSON with a region, in the partitions of `out` and of a repartition topic that the region gives. */
    PLACED(List.of("orders"), List.of()) {
        @Override
        Topology topology(String id) {
            StreamsBuilder builder = new StreamsBuilder();
            KStream<String, String> orders =
                builder.stream(id + "-orders", Consumed.with(Serdes.String(), Serdes.String()));
            orders.to(id + "-out", Produced.with(Serdes.String(), Serdes.String()).withStreamPartitioner(by(1)));
            orders.repartition(
                    Repartitioned.with(Serdes.String(), Serdes.String())
                        .withName("spread")
                        .withNumberOfPartitions(5)
                        .withStreamPartitioner(by(0)))
                .foreach((key, order) -> { });
            return builder.build();
        }
    };

    /** The partition of an order: its region and `more`; without a region there is none, and the key decides. */
    private static StreamPartitioner<String, String> by(int more) {
        return (topic, key, order, count) -> {
            JsonNode region = order == null ? null : read(order).get("region");
            return region == null || region.isNull() ? Optional.empty() : Optional.of(Set.of(region.asInt() + more));
        };
    }

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
        return read(document).get(field).asLong();
    }

    private static JsonNode read(String document) {
        try {
            return JSON.readTree(document);
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }
}
