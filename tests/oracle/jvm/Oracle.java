import java.io.BufferedWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;

/**
 * Runs applications on real Kafka Streams, one after the other, and writes down what their stores hold.
 *
 * <p>Modes: `write` processes what the input topics hold; `read` only restores, from an empty state folder. Arguments:
 * the mode, then pairs of `--bootstrap-servers`, `--state-dir`, `--output` (a file of JSON lines), `--time-limit`
 * (seconds, for each application), and `--application KIND=ID` as often as needed. Exit code 0: done; 1: an exception,
 * or the time limit, with the reason on standard error.
 */
public final class Oracle {
    private Oracle() {}

    public static void main(String[] argv) {
        try {
            run(argv);
            System.exit(0);
        } catch (Exception exception) {
            exception.printStackTrace();
            // By itself the process would not end before the application's own threads.
            System.exit(1);
        }
    }

    private static void run(String[] argv) throws Exception {
        boolean write = argv[0].equals("write");
        if (!write && !argv[0].equals("read")) {
            throw new IllegalArgumentException("mode " + argv[0] + " is neither write nor read");
        }
        Map<String, String> arguments = new HashMap<>();
        Map<String, String> applications = new LinkedHashMap<>();
        for (int i = 1; i < argv.length; i += 2) {
            String name = argv[i].substring(2);
            if (name.equals("application")) {
                String[] pair = argv[i + 1].split("=", 2);
                applications.put(pair[0], pair[1]);
            } else {
                arguments.put(name, argv[i + 1]);
            }
        }
        long limit = Long.parseLong(arguments.get("time-limit"));
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(arguments.get("output")), StandardCharsets.UTF_8)) {
            for (Map.Entry<String, String> each : applications.entrySet()) {
                Application application = Application.valueOf(each.getKey().toUpperCase());
                new Run(application, each.getValue(), config(arguments), limit).run(write, out);
            }
        }
    }

    private static Properties config(Map<String, String> arguments) {
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments.get("bootstrap-servers"));
        config.put("state.dir", arguments.get("state-dir"));
        config.put("replication.factor", "1");
        config.put("auto.offset.reset", "earliest");
        // Its changelogs end with a transaction's marker, and have gaps where others are.
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("commit.interval.ms", "100");
        // Without a cache every change of a store goes into its changelog: the most that is to be restored.
        config.put("statestore.cache.max.bytes", "0");
        return config;
    }
}
