import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.StateRestoreListener;

/**
 * One instance on Kafka Streams that runs until SIGTERM and prints a JSON line ten times a second: what it has done, and
 * the moments it saw (milliseconds since the epoch). The last line is printed once everything is committed and closed.
 *
 * <p>Exit code 0: ended by SIGTERM; 1: an exception, with the reason on standard error.
 */
public final class Serve {
    private static final long LOOK_MS = 100;

    private final Map<String, String> arguments;
    private final ObjectMapper json = new ObjectMapper();
    private final AtomicLong processed = new AtomicLong();
    private final AtomicLong restored = new AtomicLong();
    private final AtomicLong last = new AtomicLong();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final CountDownLatch ending = new CountDownLatch(1);
    private final Map<String, Long> moments = new HashMap<>();

    private Serve(Map<String, String> arguments) {
        this.arguments = arguments;
    }

    public static void main(String[] argv) throws Exception {
        Map<String, String> arguments = new HashMap<>();
        Properties config = new Properties();
        for (int i = 0; i < argv.length; i += 2) {
            String name = argv[i].substring(2);
            if (name.equals("config")) {
                String[] pair = argv[i + 1].split("=", 2);
                config.put(pair[0], pair[1]);
            } else {
                arguments.put(name, argv[i + 1]);
            }
        }
        config.put("application.id", arguments.get("application-id"));
        config.put("bootstrap.servers", arguments.get("bootstrap-servers"));
        config.put("state.dir", arguments.get("state-dir"));
        config.put("num.stream.threads", arguments.get("threads"));
        config.put("replication.factor", "1");
        config.put("auto.offset.reset", "earliest");
        new Serve(arguments).run(config);
    }

    private void run(Properties config) throws Exception {
        mark("created");
        KafkaStreams streams = new KafkaStreams(Topologies.build(arguments, this::seen), config);
        streams.setGlobalStateRestoreListener(new RestoreClock());
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                mark("running");
            }
        });
        streams.setUncaughtExceptionHandler(exception -> {
            failure.set(exception);
            ending.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ending.countDown();
            try {
                main.join();
            } catch (InterruptedException exception) {
                Thread.currentThread().interrupt();
            }
            // The code of a JVM that SIGTERM ended is another one, however well it ended.
            Runtime.getRuntime().halt(failure.get() == null ? 0 : 1);
        }));
        Queries queries = arguments.containsKey("queries-file") ? new Queries(streams, arguments) : null;
        streams.start();
        while (!ending.await(LOOK_MS, TimeUnit.MILLISECONDS)) {
            System.out.println(json.writeValueAsString(report()));
        }
        if (queries != null) {
            queries.close();
        }
        streams.close();
        mark("closed");
        if (failure.get() != null) {
            failure.get().printStackTrace();
            Runtime.getRuntime().halt(1);  // exit() would run the hook, which waits for this thread
        }
        leaveGroup(config);
        System.out.println(json.writeValueAsString(report()));
    }

    private void seen() {
        if (processed.incrementAndGet() == 1) {
            mark("first_record");
        }
        last.lazySet(System.currentTimeMillis());
    }

    /** Kafka Streams stays a member after close(); the next run of this application would wait for its session. */
    private void leaveGroup(Properties config) throws Exception {
        if (config.containsKey("group.instance.id") || Integer.parseInt(arguments.get("instances")) > 1) {
            return;
        }
        Properties admin = new Properties();
        admin.put("bootstrap.servers", arguments.get("bootstrap-servers"));
        try (Admin client = Admin.create(admin)) {
            client.removeMembersFromConsumerGroup(
                arguments.get("application-id"), new RemoveMembersFromConsumerGroupOptions()).all().get();
        }
    }

    private void mark(String moment) {
        synchronized (moments) {
            moments.putIfAbsent(moment, System.currentTimeMillis());
        }
    }

    private Map<String, Object> report() {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("processed", processed.get());
        report.put("restored", restored.get());
        synchronized (moments) {
            Map<String, Long> seen = new HashMap<>(moments);
            if (last.get() > 0) {
                seen.put("last_record", last.get());
            }
            report.put("moments", seen);
        }
        return report;
    }

    private final class RestoreClock implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long start, long end) {
            mark("restore_start");
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long count) {
            restored.addAndGet(count);
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long total) {
            synchronized (moments) {
                moments.put("restore_end", System.currentTimeMillis());
            }
        }
    }
}
