import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;

/**
 * Steps without state over the topics `in` and `other`, text to JSON {"a": number, "s": text, "items": [text]}.
 *
 * <p>Mappers give null for null, and predicates are false for what is null, as columns are here.
 */
final class Streams {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    private Streams() {}

    /** Adds the steps of this name to a topology; the topics that they write. */
    static List<String> add(StreamsBuilder builder, String name) {
        KStream<String, String> in = builder.stream("in", Consumed.with(TEXT, TEXT));
        switch (name) {
            case "filter":
                return to(Map.of("out", in.filter((key, value) -> above(value, 0))));
            case "map the values":
                return to(Map.of("out", in.mapValues(Streams::doubled)));
            case "select the key":
                return to(Map.of("out", in.selectKey((key, value) -> text(value, "s"))));
            case "a topic by record":
                in.to((key, value, context) -> odd(value) ? "odd" : "out", Produced.with(TEXT, TEXT));
                return List.of("out", "odd");
            case "repartition":
                return to(Map.of("out", in.repartition(Repartitioned.with(TEXT, TEXT))));
            case "repartition by another key":
                return to(
                    Map.of(
                        "out",
                        in.selectKey((key, value) -> text(value, "s"))
                            .repartition(Repartitioned.with(TEXT, TEXT).withNumberOfPartitions(1))
                            .mapValues(Streams::doubled)));
            case "map":
                return to(Map.of("out", in.map((key, value) -> KeyValue.pair(text(value, "s"), doubled(value)))));
            case "flat map the values":
                return to(Map.of("out", in.flatMapValues(value -> elements(value, "item"))));
            case "flat map":
                return to(Map.of("out", in.flatMap((key, value) -> byItem(value))));
            case "split":
                return to(split(in, true));
            case "split without a default":
                return to(split(in, false));
            case "merge":
                return to(Map.of("out", in.merge(builder.stream("other", Consumed.with(TEXT, TEXT)))));
            case "peek":
                return to(Map.of("out", in.peek((key, value) -> { })));
            case "split and merge":
                Map<String, KStream<String, String>> branches = split(in, true);
                return to(
                    Map.of(
                        "out", branches.get("rest").merge(branches.get("large")),
                        "odd", branches.get("odd")));
            case "ways that meet again":
                KStream<String, String> first = in.filter((key, value) -> above(value, 0));
                return to(Map.of("out", in.selectKey((key, value) -> text(value, "s")).merge(first)));
            case "all of them":
                Map<String, KStream<String, String>> parts =
                    split(
                        in.merge(builder.stream("other", Consumed.with(TEXT, TEXT)))
                            .filter((key, value) -> above(value, -5))
                            .flatMapValues(value -> elements(value, "item")),
                        true);
                return to(
                    Map.of(
                        "out", parts.get("large").selectKey((key, value) -> text(value, "item")),
                        "rest", parts.get("rest").mapValues(Streams::doubled).merge(parts.get("odd").mapValues(Streams::doubled))));
            default:
                throw new IllegalArgumentException(name);
        }
    }

    /** The elements of a value's items: the value itself with each of them in turn as the field `name`. */
    static List<String> elements(String value, String name) {
        List<String> found = new ArrayList<>();
        JsonNode all = value == null ? null : read(value).get("items");
        if (all != null && all.isArray()) {
            all.forEach(item -> found.add(((ObjectNode) read(value)).set(name, item).toString()));
        }
        return found;
    }

    private static List<KeyValue<String, String>> byItem(String value) {
        return elements(value, "item").stream().map(each -> KeyValue.pair(text(each, "item"), each)).toList();
    }

    private static Map<String, KStream<String, String>> split(KStream<String, String> in, boolean rest) {
        var branches =
            in.split(Named.as("sized."))
                .branch((key, value) -> above(value, 5), Branched.as("large"))
                .branch((key, value) -> odd(value), Branched.as("odd"));
        Map<String, KStream<String, String>> made =
            rest ? branches.defaultBranch(Branched.as("rest")) : branches.noDefaultBranch();
        Map<String, KStream<String, String>> named = new java.util.TreeMap<>();
        made.forEach((name, stream) -> named.put(name.substring("sized.".length()), stream));
        return named;
    }

    private static List<String> to(Map<String, KStream<String, String>> streams) {
        streams.forEach((topic, stream) -> stream.to(topic, Produced.with(TEXT, TEXT)));
        return List.copyOf(streams.keySet());
    }

    private static String doubled(String value) {
        if (value == null) {
            return null;
        }
        JsonNode a = read(value).get("a");
        ObjectNode made = JSON.createObjectNode();
        return (a == null || a.isNull() ? made.putNull("b") : made.put("b", a.asLong() * 2)).toString();
    }

    private static boolean above(String value, long least) {
        return number(value) != null && number(value) > least;
    }

    private static boolean odd(String value) {
        return (number(value) != null && number(value) % 2 == 1) || "odd".equals(text(value, "s"));
    }

    private static Long number(String value) {
        JsonNode a = value == null ? null : read(value).get("a");
        return a == null || a.isNull() ? null : a.asLong();
    }

    private static String text(String value, String name) {
        JsonNode found = value == null ? null : read(value).get(name);
        return found == null || found.isNull() ? null : found.asText();
    }

    private static JsonNode read(String value) {
        try {
            return JSON.readTree(value);
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }
}
