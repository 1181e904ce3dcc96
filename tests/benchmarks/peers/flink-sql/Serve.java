import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/**
 * A script of Flink SQL in a cluster of its own inside this JVM; its last statement is the job. It reads what the topics
 * hold, ends its job, and waits for SIGTERM; ten times a second it prints a JSON line with what is done and the moments
 * that it saw (milliseconds since the epoch).
 *
 * <p>Exit code 0: ended by SIGTERM; 1: the job failed, with the reason on standard error.
 */
public final class Serve {
    private static final long LOOK_MS = 10;
    private static final int LOOKS_A_LINE = 10;

    private final Map<String, String> arguments;
    private final Configuration config;
    private final CountDownLatch ending = new CountDownLatch(1);
    private final Map<String, Long> moments = new LinkedHashMap<>();
    private volatile boolean failed;
    private volatile boolean finished;

    private Serve(Map<String, String> arguments, Configuration config) {
        this.arguments = arguments;
        this.config = config;
    }

    public static void main(String[] argv) throws Exception {
        Map<String, String> arguments = new HashMap<>();
        Configuration config = new Configuration();
        for (int i = 0; i < argv.length; i += 2) {
            String name = argv[i].substring(2);
            if (name.equals("config")) {
                String[] pair = argv[i + 1].split("=", 2);
                config.setString(pair[0], pair[1]);
            } else {
                arguments.put(name, argv[i + 1]);
            }
        }
        config.setString("metrics.reporter.counted.factory.class", SourceCounts.class.getName());
        // A job that fails is a failed run: it shall not be tried again until the time is over.
        config.setString("restart-strategy.type", "none");
        new Serve(arguments, config).run();
    }

    private void run() throws Exception {
        mark("created");
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ending.countDown();
            try {
                main.join();
            } catch (InterruptedException exception) {
                Thread.currentThread().interrupt();
            }
            // The code of a JVM that SIGTERM ended is another one, however well it ended.
            Runtime.getRuntime().halt(failed ? 1 : 0);
        }));
        Thread job = new Thread(this::work, "job");
        job.setDaemon(true);
        job.start();
        for (long looks = 0; !ending.await(LOOK_MS, TimeUnit.MILLISECONDS); looks++) {
            if (SourceCounts.records() > 0) {
                mark("first_record");
            }
            if (looks % LOOKS_A_LINE == 0) {
                System.out.println(line());
            }
        }
        System.out.println(line());
        if (failed) {
            Runtime.getRuntime().halt(1);  // exit() would run the hook, which waits for this thread
        }
    }

    private void work() {
        try {
            TableEnvironment tables = TableEnvironment.create(
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(config).build());
            String[] statements = Files.readString(Path.of(arguments.get("script"))).strip().split(";\\s*(\\R|$)");
            for (int i = 0; i < statements.length - 1; i++) {
                tables.executeSql(statements[i]);
            }
            tables.executeSql(statements[statements.length - 1]).await();
            mark("last_record");
            mark("closed");
            finished = true;
        } catch (Throwable exception) {  // a class that is missing is an error, and would leave nothing said
            failed = true;
            exception.printStackTrace();
            ending.countDown();
        }
    }

    private void mark(String moment) {
        synchronized (moments) {
            moments.putIfAbsent(moment, System.currentTimeMillis());
        }
    }

    /** Records count once the job has ended: until then results may wait in a mini-batch or for a checkpoint. */
    private String line() {
        synchronized (moments) {
            String seen = moments.entrySet().stream()
                .map(each -> "\"%s\":%d".formatted(each.getKey(), each.getValue()))
                .collect(Collectors.joining(","));
            return "{\"processed\":%d,\"restored\":0,\"moments\":{%s}}"
                .formatted(finished ? SourceCounts.records() : 0, seen);
        }
    }
}
