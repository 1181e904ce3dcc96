import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** The benchmark's topologies; `seen` is called once for each order, before anything is made of it. */
final class Topologies {
    static final String STORE = "totals";
    /** As in topologies/windowed.yaml. */
    private static final Duration WINDOW = Duration.ofMinutes(10);
    private static final Duration GRACE = Duration.ofMinutes(1);

    private final Map<String, String> arguments;
    private final Runnable seen;
    private final ObjectMapper json = new ObjectMapper();
    private final StreamsBuilder builder = new StreamsBuilder();

    private Topologies(Map<String, String> arguments, Runnable seen) {
        this.arguments = arguments;
        this.seen = seen;
    }

    static Topology build(Map<String, String> arguments, Runnable seen) {
        Topologies made = new Topologies(arguments, seen);
        switch (arguments.getOrDefault("task", "totals")) {
            case "totals" -> made.totals();
            case "windowed" -> made.windowed();
            case "joined" -> made.joined();
            default -> throw new IllegalArgumentException("unknown task " + arguments.get("task"));
        }
        return made.builder.build();
    }

    private void totals() {
        accepted()
            .mapValues(value -> value.get("amount").asLong())
            .groupByKey(Grouped.with(Serdes.String(), Serdes.Long()))
            .aggregate(
                () -> "0,0",
                (key, amount, state) -> add(amount, state),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(STORE)
                    .withKeySerde(Serdes.String())
                    .withValueSerde(Serdes.String()))
            .toStream()
            .to(arguments.get("output"), Produced.with(Serdes.String(), Serdes.String()));
    }

    private void windowed() {
        accepted()
            .mapValues(value -> value.get("amount").asLong())
            .groupByKey(Grouped.with(Serdes.String(), Serdes.Long()))
            .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as(STORE).withKeySerde(Serdes.String()))
            .toStream()
            .mapValues(count -> "{\"n\":" + count + "}")
            .to(arguments.get("output"), Produced.with(
                WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()), Serdes.String()));
    }

    private void joined() {
        var users = builder.table(arguments.get("users"), Consumed.with(Serdes.String(), Serdes.ByteArray()),
            Materialized.<String, byte[], KeyValueStore<Bytes, byte[]>>as("users"));
        accepted()
            .join(users, (order, user) -> "{\"amount\":" + order.get("amount").asLong()
                + ",\"tier\":" + read(user).get("tier").asInt() + "}")
            .to(arguments.get("output"), Produced.with(Serdes.String(), Serdes.String()));
    }

    private KStream<String, JsonNode> accepted() {
        return builder.stream(arguments.get("input"), Consumed.with(Serdes.String(), Serdes.ByteArray()))
            .mapValues(value -> {
                seen.run();
                return read(value);
            })
            .filter((key, value) -> value.get("amount").asInt() >= 0);
    }

    private JsonNode read(byte[] value) {
        try {
            return json.readTree(value);
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }

    private static String add(long amount, String state) {
        int comma = state.indexOf(',');
        long sum = Long.parseLong(state.substring(0, comma)) + amount;
        long count = Long.parseLong(state.substring(comma + 1)) + 1;
        return sum + "," + count;
    }
}
