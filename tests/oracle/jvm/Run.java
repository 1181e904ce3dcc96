import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedWriter;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.StateRestoreListener;

/** One application from its start until it has done what it is for, with what its stores hold then. */
final class Run {
    private static final long TICK_MS = 20;

    private final Application application;
    private final String id;
    private final Properties config;
    private final long deadline;
    private final CountDownLatch running = new CountDownLatch(1);
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final Map<String, Long> restored = new ConcurrentHashMap<>();

    Run(Application application, String id, Properties config, long limitSeconds) {
        this.application = application;
        this.id = id;
        this.config = config;
        this.config.put("application.id", id);
        this.deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(limitSeconds);
    }

    /** Starts it, waits until it runs and, with `write`, has committed all input; then writes its stores down. */
    void run(boolean write, BufferedWriter out) throws Exception {
        KafkaStreams streams = new KafkaStreams(application.topology(id), config);
        streams.setGlobalStateRestoreListener(new Counter());
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                running.countDown();
            }
        });
        streams.setUncaughtExceptionHandler(exception -> {
            failure.set(exception);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.cleanUp();
        streams.start();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", config.get("bootstrap.servers")))) {
            while (running.getCount() > 0 || write && !caughtUp(admin)) {
                check();
                running.await(TICK_MS, TimeUnit.MILLISECONDS);
                Thread.sleep(TICK_MS);
            }
            for (Store store : application.stores) {
                store.dump(streams, id, out);
            }
            out.write(new ObjectMapper().writeValueAsString(Map.of("application", id, "restored", restored)));
            out.newLine();
            streams.close();
            // It stays a member after close(); whoever takes the application over would wait for its session's end.
            admin.removeMembersFromConsumerGroup(id, new RemoveMembersFromConsumerGroupOptions()).all().get();
        }
    }

    private boolean caughtUp(Admin admin) throws Exception {
        var topics = admin.describeTopics(application.inputs(id)).allTopicNames().get().values();
        Map<TopicPartition, OffsetSpec> asked = topics.stream()
            .flatMap(topic -> topic.partitions().stream().map(it -> new TopicPartition(topic.name(), it.partition())))
            .collect(Collectors.toMap(partition -> partition, partition -> OffsetSpec.latest()));
        var ends = admin.listOffsets(asked).all().get();
        var committed = admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get();
        return ends.entrySet().stream().allMatch(end -> {
            var offset = committed.get(end.getKey());
            return end.getValue().offset() == (offset == null ? 0 : offset.offset());
        });
    }

    private void check() throws Exception {
        if (failure.get() != null) {
            throw new IllegalStateException("a stream thread of " + id + " failed", failure.get());
        }
        if (System.nanoTime() > deadline) {
            throw new TimeoutException(id + " was not done in time; restored so far: " + restored);
        }
    }

    private final class Counter implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long start, long end) {}

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long count) {
            restored.merge(store, count, Long::sum);
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long total) {}
    }
}
