import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.BufferedWriter;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * The store over HTTP, with the paths of this project's own server, by the JDK's server: /stores/totals/keys/KEY, /range.
 * Its address goes into the file `queries-file`.
 */
final class Queries {
    private static final int THREADS = 4;

    private final KafkaStreams streams;
    private final HttpServer server;
    private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);

    Queries(KafkaStreams streams, Map<String, String> arguments) throws IOException {
        this.streams = streams;
        // Without it each answer waits for the client's delayed acknowledgement, 40 ms.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/stores/" + Topologies.STORE, this::answer);
        server.setExecutor(threads);
        server.start();
        Path file = Path.of(arguments.get("queries-file"));
        Path whole = file.resolveSibling(file.getFileName() + ".part");
        Files.writeString(whole, "{\"url\":\"http://127.0.0.1:" + server.getAddress().getPort() + "\"}");
        Files.move(whole, file);
    }

    void close() {
        server.stop(0);
        threads.shutdown();
    }

    private void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        try (exchange) {
            ReadOnlyKeyValueStore<String, String> store;
            try {
                store = streams.store(StoreQueryParameters.fromNameAndType(
                    Topologies.STORE, QueryableStoreTypes.<String, String>keyValueStore()));
            } catch (InvalidStateStoreException exception) {
                send(exchange, 503, String.valueOf(exception.getMessage()));
                return;
            }
            if (path.endsWith("/all")) {
                exchange.sendResponseHeaders(200, 0);
                lines(store.all(), exchange.getResponseBody());
            } else if (path.endsWith("/range")) {
                ByteArrayOutputStream lines = new ByteArrayOutputStream();
                Map<String, String> asked = parameters(exchange.getRequestURI().getRawQuery());
                lines(store.range(asked.get("from"), asked.get("to")), lines);
                send(exchange, 200, lines.toString(StandardCharsets.UTF_8));
            } else {
                String key = path.substring(path.lastIndexOf('/') + 1);
                send(exchange, 200, line(key, store.get(key)));
            }
        }
    }

    private static void send(HttpExchange exchange, int code, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(code, bytes.length);
        exchange.getResponseBody().write(bytes);
    }

    private static Map<String, String> parameters(String query) {
        Map<String, String> parameters = new HashMap<>();
        for (String pair : query.split("&")) {
            String[] parts = pair.split("=", 2);
            parameters.put(parts[0], URLDecoder.decode(parts[1], StandardCharsets.UTF_8));
        }
        return parameters;
    }

    private static void lines(KeyValueIterator<String, String> all, OutputStream to) throws IOException {
        Writer out = new BufferedWriter(new OutputStreamWriter(to, StandardCharsets.UTF_8));
        long records = 0;
        try (KeyValueIterator<String, String> entries = all) {
            while (entries.hasNext()) {
                KeyValue<String, String> entry = entries.next();
                out.write(line(entry.key, entry.value) + "\n");
                records++;
            }
        }
        out.write("{\"complete\":{\"records\":" + records + "}}\n");
        out.flush();
    }

    private static String line(String key, String value) {
        return "{\"key\":\"" + key + "\",\"value\":" + (value == null ? "null" : object(value)) + "}";
    }

    /** Values that the harness wrote into a changelog are objects already. */
    private static String object(String value) {
        int comma = value.indexOf(',');
        return value.startsWith("{") ? value
            : "{\"total\":" + value.substring(0, comma) + ",\"n\":" + value.substring(comma + 1) + "}";
    }
}
