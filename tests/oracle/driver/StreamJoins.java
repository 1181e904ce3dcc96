import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.processor.internals.ProcessorNode;
import org.apache.kafka.streams.processor.internals.ProcessorTopology;

/** Joins of the streams `in`, JSON {"a": number}, and `other`, JSON {"b": number}, as JSON {"a", "b"}. */
final class StreamJoins {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();
    // Lies so far back that it is never the reason for not looking.
    private static final long LONG_AGO = Long.MIN_VALUE / 4;

    private StreamJoins() {}

    /** From {"kind": "inner", "left" or "outer", "before", "after", "grace"} in ms; with "self" of `in` with itself. */
    static void add(StreamsBuilder builder, JsonNode asked) {
        KStream<String, String> left = builder.stream("in", Consumed.with(TEXT, TEXT));
        KStream<String, String> right =
            asked.has("self") ? left : builder.stream("other", Consumed.with(TEXT, TEXT));
        JoinWindows windows =
            JoinWindows.ofTimeDifferenceAndGrace(ms(asked, "before"), ms(asked, "grace")).after(ms(asked, "after"));
        StreamJoined<String, String, String> texts = StreamJoined.with(TEXT, TEXT, TEXT);
        KStream<String, String> joined;
        switch (asked.get("kind").asText()) {
            case "inner":
                joined = left.join(right, StreamJoins::both, windows, texts);
                break;
            case "left":
                joined = left.leftJoin(right, StreamJoins::both, windows, texts);
                break;
            default:
                joined = left.outerJoin(right, StreamJoins::both, windows, texts);
        }
        joined.to("out", Produced.with(TEXT, TEXT));
    }

    /**
     * Lets the joins look for windows that have closed with the next record.
     *
     * <p>To save time they do not, before a time that they remember from their last look; that one may lie late, and
     * their results then wait.
     */
    static void lookAgain(TopologyTestDriver driver) {
        ProcessorTopology topology = (ProcessorTopology) value(value(driver, "task"), "topology");
        for (ProcessorNode<?, ?, ?, ?> node : topology.processors()) {
            Object processor = value(node, "processor");
            Object tracker = processor == null ? null : value(processor, "sharedTimeTracker");
            if (tracker != null) {
                set(tracker, "minTime", LONG_AGO);
            }
        }
    }

    private static String both(String left, String right) {
        ObjectNode found = JSON.createObjectNode();
        found.set("a", left == null ? JSON.nullNode() : read(left).get("a"));
        JsonNode other = right == null ? null : read(right);
        found.set("b", other == null ? JSON.nullNode() : other.has("b") ? other.get("b") : other.get("a"));
        return found.toString();
    }

    private static JsonNode read(String text) {
        try {
            return JSON.readTree(text);
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }

    private static Duration ms(JsonNode asked, String name) {
        return Duration.ofMillis(asked.get(name).asLong());
    }

    /** A private field of an object, of its class or of one above it; null when there is none of this name. */
    private static Object value(Object owner, String name) {
        try {
            Field field = field(owner, name);
            return field == null ? null : field.get(owner);
        } catch (IllegalAccessException exception) {
            throw new IllegalStateException(exception);
        }
    }

    private static void set(Object owner, String name, long number) {
        try {
            field(owner, name).setLong(owner, number);
        } catch (IllegalAccessException exception) {
            throw new IllegalStateException(exception);
        }
    }

    private static Field field(Object owner, String name) {
        for (Class<?> each = owner.getClass(); each != null; each = each.getSuperclass()) {
            try {
                Field found = each.getDeclaredField(name);
                found.setAccessible(true);
                return found;
            } catch (NoSuchFieldException exception) {
                continue;
            }
        }
        return null;
    }
}
