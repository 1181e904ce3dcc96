import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * Three streams in one cogroup (KIP-150), text to JSON {"a": number}, of which records without a value are left out: `in`
 * adds its numbers, `less` takes them away, and `seen` is counted only. JSON {"total", "n", "most"} of each key, window
 * or session goes to `out`; `most` is the largest number of all three.
 */
final class Cogroups {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();
    private static final String EMPTY = "{\"total\":0,\"n\":0,\"most\":null}";

    private Cogroups() {}

    /** Adds the steps of "keys", "windows" (10 s, grace 5 s) or "sessions" (gap 4 s, grace 5 s) to a topology. */
    static List<String> add(StreamsBuilder builder, String kind) {
        CogroupedKStream<String, String> all =
            grouped(builder, "in").<String>cogroup((key, value, state) -> with(state, number(value), number(value)))
                .cogroup(grouped(builder, "less"), (key, value, state) -> with(state, -number(value), number(value)))
                .cogroup(grouped(builder, "seen"), (key, value, state) -> with(state, 0, number(value)));
        switch (kind) {
            case "windows" ->
                all.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofSeconds(5)))
                    .aggregate(() -> EMPTY, Materialized.with(TEXT, TEXT))
                    .toStream()
                    .to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10_000), TEXT));
            case "sessions" ->
                all.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(4), Duration.ofSeconds(5)))
                    .aggregate(() -> EMPTY, (key, one, other) -> merged(one, other), Materialized.with(TEXT, TEXT))
                    .toStream()
                    .to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), TEXT));
            default ->
                all.aggregate(() -> EMPTY, Materialized.with(TEXT, TEXT)).toStream().to("out", Produced.with(TEXT, TEXT));
        }
        return List.of("out");
    }

    private static KGroupedStream<String, String> grouped(StreamsBuilder builder, String topic) {
        // To an aggregate by windows a record without a value would come as null, and to one by keys not at all.
        return builder.stream(topic, Consumed.with(TEXT, TEXT))
            .filter((key, value) -> value != null)
            .groupByKey(Grouped.with(TEXT, TEXT));
    }

    private static long number(String value) {
        return read(value).get("a").asLong();
    }

    private static String with(String state, long more, long number) {
        JsonNode before = read(state);
        return shown(before.get("total").asLong() + more, before.get("n").asLong() + 1, larger(before.get("most"), number));
    }

    private static String merged(String one, String other) {
        JsonNode first = read(one);
        JsonNode second = read(other);
        long total = first.get("total").asLong() + second.get("total").asLong();
        JsonNode most = second.get("most");
        return shown(
            total,
            first.get("n").asLong() + second.get("n").asLong(),
            most.isNull() ? first.get("most").asText() : larger(first.get("most"), most.asLong()));
    }

    private static String larger(JsonNode before, long number) {
        return String.valueOf(before.isNull() ? number : Math.max(before.asLong(), number));
    }

    private static String shown(long total, long n, String most) {
        return "{\"total\":" + total + ",\"n\":" + n + ",\"most\":" + most + "}";
    }

    private static JsonNode read(String text) {
        try {
            return JSON.readTree(text);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
