import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedWriter;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
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
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * The benchmark's work on real Kafka Streams: JSON, filter, sum and count per key, store, changelog and sink.
 *
 * <p>Prints one JSON line with the moments it saw (milliseconds since the epoch) and the records it counted. Exit code
 * 0: done; 1: an exception, or the time limit, with the reason on standard error.
 */
public final class Peer {
    private final Map<String, String> arguments;
    private final Properties config;
    private final ObjectMapper json = new ObjectMapper();
    private final long expected;
    private final AtomicLong processed = new AtomicLong();
    private final AtomicLong restored = new AtomicLong();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final CountDownLatch finished = new CountDownLatch(1);
    private final Map<String, Long> moments = new HashMap<>();

    private Peer(Map<String, String> arguments, Properties config) {
        this.arguments = arguments;
        this.config = config;
        this.expected = Long.parseLong(arguments.get("records"));
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
        new Peer(arguments, config).run(arguments.get("mode").equals("restore"));
        System.exit(0);
    }

    private void run(boolean restore) throws Exception {
        mark("created");
        KafkaStreams streams = new KafkaStreams(Topologies.build(arguments, this::seen), config);
        streams.setGlobalStateRestoreListener(new RestoreClock());
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                mark("running");
                if (restore) {
                    finished.countDown();
                }
            }
        });
        streams.setUncaughtExceptionHandler(exception -> {
            failure.set(exception);
            finished.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        boolean inTime = finished.await(Long.parseLong(arguments.get("time-limit")), TimeUnit.SECONDS);
        double busy = busySeconds();
        if (failure.get() == null && inTime && restore) {
            dump(streams, Path.of(arguments.get("dump")));
        }
        // Closing commits: the default commit interval of 30 s would otherwise be waited for.
        streams.close();
        mark("closed");
        leaveGroup();
        if (failure.get() != null) {
            throw new IllegalStateException("the peer's stream thread failed", failure.get());
        }
        if (!inTime) {
            throw new IllegalStateException("time limit: processed " + processed + ", restored " + restored
                + ", stream threads busy for " + busy + " s");
        }
        System.out.println(json.writeValueAsString(report(busy)));
    }

    private void seen() {
        long count = processed.incrementAndGet();
        if (count == 1) {
            mark("first_record");
        }
        if (count == expected) {
            mark("processed");
            finished.countDown();
        }
    }

    /** Writes the store as lines of key, tab, value. */
    private static void dump(KafkaStreams streams, Path file) throws IOException {
        var store = streams.store(
            StoreQueryParameters.fromNameAndType(Topologies.STORE, QueryableStoreTypes.<String, String>keyValueStore()));
        try (BufferedWriter out = Files.newBufferedWriter(file, StandardCharsets.UTF_8);
                KeyValueIterator<String, String> entries = store.all()) {
            while (entries.hasNext()) {
                KeyValue<String, String> entry = entries.next();
                out.write(entry.key + "\t" + entry.value + "\n");
            }
        }
    }

    /** Kafka Streams stays a member after close(); the next run of this application would wait for its session. */
    private void leaveGroup() throws Exception {
        Properties admin = new Properties();
        admin.put("bootstrap.servers", arguments.get("bootstrap-servers"));
        try (Admin client = Admin.create(admin)) {
            client.removeMembersFromConsumerGroup(
                arguments.get("application-id"), new RemoveMembersFromConsumerGroupOptions()).all().get();
        }
    }

    /** Processor seconds of all stream threads so far: far below the elapsed time, they waited for records. */
    private static double busySeconds() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long nanos = 0;
        for (long id : threads.getAllThreadIds()) {
            var thread = threads.getThreadInfo(id);
            if (thread != null && thread.getThreadName().matches(".*-StreamThread-\\d+")) {
                nanos += threads.getThreadCpuTime(id);
            }
        }
        return nanos / 1e9;
    }

    private void mark(String moment) {
        synchronized (moments) {
            moments.putIfAbsent(moment, System.currentTimeMillis());
        }
    }

    private Map<String, Object> report(double busy) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("mode", arguments.get("mode"));
        report.put("threads", Integer.parseInt(arguments.get("threads")));
        report.put("processed", processed.get());
        report.put("restored", restored.get());
        report.put("busy_s", busy);
        synchronized (moments) {
            report.put("moments", new HashMap<>(moments));
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
