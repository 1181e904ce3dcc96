import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.DeserializationExceptionHandler;
import org.apache.kafka.streams.errors.ErrorHandlerContext;
import org.apache.kafka.streams.errors.ProcessingExceptionHandler;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Record;

/**
 * The stream `in`, text to JSON {"a", "b", "said"}: a / b to `out`, and by key how many and their sum to `counts`. What
 * divides by zero, and what is JSON but no object, becomes what the record itself says: "fail", "continue", or
 * "deadLetter" to `letters` (KIP-161, KIP-1033, KIP-1034).
 */
final class Handlers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<JsonNode> OBJECTS =
        Serdes.serdeFrom((topic, value) -> value == null ? null : bytes(value), (topic, data) -> object(data));

    private Handlers() {}

    /** Adds the steps to a topology, and the handlers to its settings; the topics that they write. */
    static List<String> add(StreamsBuilder builder) {
        KStream<String, Long> divided =
            builder.stream("in", Consumed.with(TEXT, OBJECTS))
                .mapValues(value -> value.get("a").asLong() / value.get("b").asLong());
        divided.mapValues(q -> "{\"q\":" + q + "}").to("out", Produced.with(TEXT, TEXT));
        divided
            .groupByKey(Grouped.with(TEXT, Serdes.Long()))
            .aggregate(() -> "0 0", Handlers::added, Materialized.with(TEXT, TEXT))
            .toStream()
            .mapValues(Handlers::shown)
            .to("counts", Produced.with(TEXT, TEXT));
        return List.of("out", "counts", "letters");
    }

    static void configure(Properties config) {
        config.put("deserialization.exception.handler", Reading.class);
        config.put("processing.exception.handler", Processing.class);
    }

    private static String added(String key, Long value, String state) {
        String[] parts = state.split(" ");
        return (Long.parseLong(parts[0]) + value) + " " + (Long.parseLong(parts[1]) + 1);
    }

    private static String shown(String state) {
        String[] parts = state.split(" ");
        return "{\"total\":" + parts[0] + ",\"n\":" + parts[1] + "}";
    }

    private static JsonNode object(byte[] data) {
        JsonNode read = data == null ? null : read(data);
        if (read != null && !read.isObject()) {
            throw new SerializationException("no object");
        }
        return read;
    }

    private static JsonNode read(byte[] data) {
        try {
            return JSON.readTree(data);
        } catch (IOException error) {
            throw new SerializationException(error);
        }
    }

    private static byte[] bytes(JsonNode value) {
        return value.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }

    private static List<ProducerRecord<byte[], byte[]>> letters(String said, ErrorHandlerContext at, byte[] key, byte[] value) {
        return said.equals("deadLetter")
            ? List.of(new ProducerRecord<>("letters", null, at.timestamp(), key, value))
            : List.of();
    }

    /** Decides on records that can't be read. */
    public static final class Reading implements DeserializationExceptionHandler {
        @Override
        public Response handleError(ErrorHandlerContext at, ConsumerRecord<byte[], byte[]> record, Exception error) {
            String said = read(record.value()).asText();
            return said.equals("fail")
                ? Response.fail()
                : Response.resume(letters(said, at, record.key(), record.value()));
        }

        @Override
        public void configure(Map<String, ?> config) {}
    }

    /** Decides on records over which a step fails. */
    public static final class Processing implements ProcessingExceptionHandler {
        @Override
        public Response handleError(ErrorHandlerContext at, Record<?, ?> record, Exception error) {
            String said = read(at.sourceRawValue()).get("said").asText();
            return said.equals("fail")
                ? Response.fail()
                : Response.resume(letters(said, at, at.sourceRawKey(), at.sourceRawValue()));
        }

        @Override
        public void configure(Map<String, ?> config) {}
    }
}
