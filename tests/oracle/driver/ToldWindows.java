import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Windowed;

/**
 * Behind windows of which every change goes on, JSON {"total", "n"}: those that fit, as a table of them tells it, to
 * `out`; these merged with all changes to `met`, and the changes that fit merged with all to `twice`; and how many
 * changes have fitted by whether the total is even, JSON {"v": number}, to `counts`.
 */
final class ToldWindows {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    private ToldWindows() {}

    /** Adds the steps; the topics that they write. */
    static List<String> add(KTable<Windowed<String>, String> windows, Serde<Windowed<String>> keys) {
        KStream<Windowed<String>, String> fitting = windows.filter((key, value) -> fits(value)).toStream();
        KStream<Windowed<String>, String> every = windows.toStream();
        KStream<Windowed<String>, String> some = every.filter((key, value) -> fits(value));
        fitting.to("out", Produced.with(keys, TEXT));
        fitting.merge(every).to("met", Produced.with(keys, TEXT));
        some.merge(every).to("twice", Produced.with(keys, TEXT));
        some.selectKey((key, value) -> String.valueOf(Math.abs(total(value)) % 2))
            .groupByKey(Grouped.with(TEXT, TEXT))
            .count(Materialized.with(TEXT, Serdes.Long()))
            .toStream()
            .mapValues(count -> JSON.createObjectNode().put("v", count).toString())
            .to("counts", Produced.with(TEXT, TEXT));
        return List.of("out", "met", "twice", "counts");
    }

    private static boolean fits(String value) {
        return value != null && total(value) % 3 != 0;
    }

    private static long total(String value) {
        try {
            return JSON.readTree(value).get("total").asLong();
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }
}
