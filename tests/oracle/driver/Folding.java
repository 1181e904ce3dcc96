import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.Merger;

/** How an aggregate begins, takes a record, and puts two states together. */
record Folding(
    Initializer<String> zero, Aggregator<String, String, String> add, Merger<String, String> merge) {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Every record in its order, and how sessions came together, as JSON {"trail", "n"}: Trail of custom_classes.py. */
    static final Folding TRAIL =
        new Folding(
            () -> state("", 0),
            (key, value, state) -> {
                JsonNode before = read(state);
                String amount = value == null ? "null" : read(value).get("a").asText();
                return state(before.get("trail").asText() + "," + amount, before.get("n").asLong() + 1);
            },
            (key, one, other) -> {
                JsonNode first = read(one);
                JsonNode second = read(other);
                long n = first.get("n").asLong();
                if (n == 0) {
                    return other; // the state that a session begins with
                }
                String trail = "[" + first.get("trail").asText() + "|" + second.get("trail").asText() + "]";
                return state(trail, n + second.get("n").asLong());
            });

    /** The same but for the number 0, which leaves nothing; for what is no session. */
    static final Folding RESTARTING =
        new Folding(
            TRAIL.zero(),
            (key, value, state) ->
                value != null && read(value).get("a").asLong() == 0 ? null : TRAIL.add().apply(key, value, state),
            TRAIL.merge());

    private static JsonNode read(String text) {
        try {
            return JSON.readTree(text);
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }

    private static String state(String trail, long n) {
        return JSON.createObjectNode().put("trail", trail).put("n", n).toString();
    }
}
