import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Window;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * A processor over the topic `in`, JSON {"op": text, "n": number}, that does what each record says, and tells of it in JSON
 * {"seen": text}; records with the op `no` are left out before it. It is the class Scripted of support/scripted_processor.py.
 */
final class Processors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();

    private Processors() {}

    /**
     * One with all schedules, by a clock that begins at "start" (ms); with "two": true one that sweeps and one that counts,
     * merged; with "windows": true one with a window store; with "sessions": true one with a session store; with "children": true one that forwards to two children, or to one of them, which are merged.
     */
    static void add(StreamsBuilder builder, JsonNode asked) {
        KStream<String, String> in =
            builder.stream("in", Consumed.with(TEXT, TEXT)).filter((key, value) -> !"no".equals(op(value)));
        if (asked.has("windows")) {
            builder.addStateStore(
                Stores.windowStoreBuilder(
                    Stores.persistentWindowStore("windows", Duration.ofMillis(30), Duration.ofMillis(10), false),
                    TEXT,
                    Serdes.Long()));
            in.process(Windowing::new, "windows").to("out", Produced.with(TEXT, TEXT));
            return;
        }
        if (asked.has("sessions")) {
            builder.addStateStore(
                Stores.sessionStoreBuilder(
                    Stores.persistentSessionStore("sessions", Duration.ofMillis(30)), TEXT, Serdes.Long()));
            in.process(Sessioning::new, "sessions").to("out", Produced.with(TEXT, TEXT));
            return;
        }
        boolean two = asked.has("two");
        boolean children = asked.has("children");
        KStream<String, String> first = processed(builder, in, "seen", true, !two, children);
        KStream<String, String> all = first;
        if (two) {
            all = first.merge(processed(builder, in, "other", false, true, false));
        } else if (children) {
            all = child(first, "large").merge(child(first, "small"));
        }
        all.to("out", Produced.with(TEXT, TEXT));
    }

    private static KStream<String, String> child(KStream<String, String> parent, String name) {
        return parent.mapValues(
            value -> value == null ? null : json(name + " " + node(value).get("seen").asText()), Named.as(name));
    }

    private static KStream<String, String> processed(
            StreamsBuilder builder,
            KStream<String, String> in,
            String store,
            boolean sweeps,
            boolean counts,
            boolean children) {
        builder.addStateStore(
            Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(store), TEXT, Serdes.Long()));
        return in.process(() -> new Scripted(store, sweeps, counts, children), store);
    }

    private static final class Scripted extends ContextualProcessor<String, String, String, String> {
        private final String store;
        private final boolean sweeps;
        private final boolean counts;
        private final boolean children;
        private KeyValueStore<String, Long> seen;
        private Cancellable first;

        Scripted(String store, boolean sweeps, boolean counts, boolean children) {
            this.store = store;
            this.sweeps = sweeps;
            this.counts = counts;
            this.children = children;
        }

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            seen = context.getStateStore(store);
            if (sweeps) {
                first = context.schedule(Duration.ofMillis(7), PunctuationType.STREAM_TIME, this::sweep);
            }
            if (counts) {
                Cancellable second =
                    context.schedule(Duration.ofMillis(10), PunctuationType.STREAM_TIME, this::count);
                first = sweeps ? first : second;
            }
            if (sweeps && counts) {
                context.schedule(Duration.ofMillis(47), PunctuationType.WALL_CLOCK_TIME, this::tick);
                context.schedule(Duration.ofMillis(30), PunctuationType.WALL_CLOCK_TIME, this::tock);
            }
        }

        @Override
        public void process(Record<String, String> record) {
            String where = context().recordMetadata().map(found -> "" + found.offset()).orElse("nowhere");
            String done = done(record);
            Record<String, String> told =
                record.withValue(json(where + " at " + context().currentStreamTimeMs() + ": " + done));
            passOn(told, record.value() == null ? 0 : node(record.value()).get("n").asLong());
        }

        private void passOn(Record<String, String> record, long number) {
            long to = children ? number % 4 : 0;
            if (to == 1) {
                context().forward(record, "large");
            } else if (to >= 2) {
                context().forward(record, "small");
            }
            if (to == 0 || to == 3) {
                context().forward(record);
            }
        }

        private String done(Record<String, String> record) {
            String key = record.key();
            if (key == null) {
                return "no key";
            }
            if (record.value() == null) {
                return "" + seen.delete(key);
            }
            long n = node(record.value()).get("n").asLong();
            switch (op(record.value())) {
                case "put":
                    seen.put(key, n);
                    return "put";
                case "gone":
                    seen.put(key, null);
                    return "gone";
                case "absent":
                    return "" + seen.putIfAbsent(key, n);
                case "delete":
                    return "" + seen.delete(key);
                case "range":
                    return entries(n % 2 == 1 ? seen.reverseRange("b", key) : seen.range("b", key));
                case "from":
                    return entries(seen.range(key, null));
                case "all":
                    return entries(n % 2 == 1 ? seen.reverseAll() : seen.all());
                case "clear":
                    return cleared();
                case "cancel":
                    first.cancel();
                    return "cancelled";
                case "twice":
                    context().forward(
                        new Record<>(key + "!", json("moved"), record.timestamp() + 1000, new RecordHeaders()));
                    context().forward(record.withValue(null));
                    return "twice";
                default:
                    return "" + seen.get(key);
            }
        }

        /** Deletes each key that it comes to, and puts one behind all. */
        private String cleared() {
            List<String> found = new ArrayList<>();
            try (KeyValueIterator<String, Long> all = seen.all()) {
                while (all.hasNext()) {
                    KeyValue<String, Long> each = all.next();
                    found.add(each.key + "=" + each.value);
                    seen.delete(each.key);
                    seen.put("zz", (long) found.size());
                }
            }
            return String.join(",", found);
        }

        private void sweep(long time) {
            String found = entries(seen.all());
            if (!found.isEmpty()) {
                seen.delete(found.substring(0, found.indexOf('=')));
            }
            tell("sweep", "swept " + found, time);
        }

        private void count(long time) {
            tell("count", entries(seen.all()).length() + " at " + time, time);
        }

        private void tick(long time) {
            seen.put("tick", time);
            tell("tick", "tick " + time + " in " + context().currentStreamTimeMs(), time);
        }

        private void tock(long time) {
            tell("tock", "tock " + entries(seen.all()), time + 5);
        }

        private void tell(String key, String text, long time) {
            passOn(new Record<>(key, json(text), time, new RecordHeaders()), time);
        }

        private static String entries(KeyValueIterator<String, Long> found) {
            List<String> texts = new ArrayList<>();
            try (found) {
                found.forEachRemaining(each -> texts.add(each.key + "=" + each.value));
            }
            return String.join(",", texts);
        }
    }

    /** The class Windowing of support/scripted_processor.py. */
    private static final class Windowing extends ContextualProcessor<String, String, String, String> {
        private WindowStore<String, Long> windows;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            windows = context.getStateStore("windows");
            context.schedule(Duration.ofMillis(7), PunctuationType.STREAM_TIME, this::sweep);
        }

        @Override
        public void process(Record<String, String> record) {
            context().forward(record.withValue(json(done(record))));
        }

        private String done(Record<String, String> record) {
            String key = record.key();
            if (key == null) {
                return "no key";
            }
            String op = record.value() == null ? "gone" : op(record.value());
            long n = record.value() == null ? 0 : node(record.value()).get("n").asLong();
            boolean back = n % 2 == 1;
            long time = record.timestamp();
            long at = time / 10 * 10;
            switch (op) {
                case "put":
                case "absent":
                case "twice":
                    windows.put(key, n, at);
                    return "put";
                case "gone":
                case "delete":
                    windows.put(key, null, at);
                    return "gone";
                case "range":
                case "from":
                    List<String> starts = new ArrayList<>();
                    try (var found =
                            back ? windows.backwardFetch(key, time - 20, time) : windows.fetch(key, time - 20, time)) {
                        found.forEachRemaining(each -> starts.add(each.key + "=" + each.value));
                    }
                    return String.join(",", starts);
                case "all":
                    return texts(back ? windows.backwardAll() : windows.all());
                case "clear":
                    return texts(
                        back ? windows.backwardFetchAll(time - 20, time) : windows.fetchAll(time - 20, time));
                default:
                    return "" + windows.fetch(key, at);
            }
        }

        private void sweep(long time) {
            String found = texts(windows.all());
            if (!found.isEmpty()) {
                String[] first = found.substring(0, found.indexOf('=')).split("@");
                windows.put(first[0], null, Long.parseLong(first[1]));
            }
            context().forward(new Record<>("sweep", json("swept " + found), time, new RecordHeaders()));
        }

        private static String texts(KeyValueIterator<Windowed<String>, Long> found) {
            List<String> texts = new ArrayList<>();
            try (found) {
                found.forEachRemaining(
                    each -> texts.add(each.key.key() + "@" + each.key.window().start() + "=" + each.value));
            }
            return String.join(",", texts);
        }
    }

    /** The class Sessioning of support/scripted_processor.py. */
    private static final class Sessioning extends ContextualProcessor<String, String, String, String> {
        private SessionStore<String, Long> sessions;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            sessions = context.getStateStore("sessions");
            context.schedule(Duration.ofMillis(7), PunctuationType.STREAM_TIME, this::sweep);
        }

        @Override
        public void process(Record<String, String> record) {
            context().forward(record.withValue(json(done(record))));
        }

        private String done(Record<String, String> record) {
            String key = record.key();
            if (key == null) {
                return "no key";
            }
            String op = record.value() == null ? "gone" : op(record.value());
            long n = record.value() == null ? 0 : node(record.value()).get("n").asLong();
            boolean back = n % 2 == 1;
            long time = record.timestamp();
            long start = Math.max(time - 4 * n, 0);
            switch (op) {
                case "put":
                    sessions.put(session(key, start, time), n);
                    return "put";
                case "absent":
                case "twice":
                    return merged(key, n, time);
                case "gone":
                case "delete":
                    List<KeyValue<Windowed<String>, Long>> found = listed(sessions.findSessions(key, time, time));
                    found.forEach(each -> sessions.remove(each.key));
                    return "removed " + texts(found);
                case "range":
                    return texts(
                        listed(
                            back
                                ? sessions.backwardFindSessions(key, time - 20, time)
                                : sessions.findSessions(key, time - 20, time)));
                case "from":
                    return texts(listed(back ? sessions.backwardFetch(key) : sessions.fetch(key)));
                case "all":
                    return texts(listed(back ? sessions.backwardFetch(null, null) : sessions.fetch(null, null)));
                case "clear":
                    return texts(
                        listed(
                            back
                                ? sessions.backwardFindSessions("b", key, time - 20, time - 2)
                                : sessions.findSessions("b", key, time - 20, time - 2)));
                default:
                    return "" + sessions.fetchSession(key, start, time);
            }
        }

        private String merged(String key, long number, long time) {
            long start = time;
            long end = time;
            for (KeyValue<Windowed<String>, Long> each : listed(sessions.findSessions(key, time - 5, time + 5))) {
                number += each.value;
                start = Math.min(start, each.key.window().start());
                end = Math.max(end, each.key.window().end());
                sessions.remove(each.key);
            }
            sessions.put(session(key, start, end), number);
            return start + "-" + end + "=" + number;
        }

        private void sweep(long time) {
            List<KeyValue<Windowed<String>, Long>> found = listed(sessions.fetch(null, null));
            if (!found.isEmpty()) {
                sessions.put(found.get(0).key, null);
            }
            context().forward(new Record<>("sweep", json("swept " + texts(found)), time, new RecordHeaders()));
        }

        private static Windowed<String> session(String key, long start, long end) {
            return new Windowed<>(key, new SessionWindow(start, end));
        }

        private static List<KeyValue<Windowed<String>, Long>> listed(KeyValueIterator<Windowed<String>, Long> found) {
            List<KeyValue<Windowed<String>, Long>> list = new ArrayList<>();
            try (found) {
                found.forEachRemaining(list::add);
            }
            return list;
        }

        private static String texts(List<KeyValue<Windowed<String>, Long>> found) {
            List<String> texts = new ArrayList<>();
            for (KeyValue<Windowed<String>, Long> each : found) {
                Window window = each.key.window();
                texts.add(each.key.key() + "@" + window.start() + "-" + window.end() + "=" + each.value);
            }
            return String.join(",", texts);
        }
    }

    private static String json(String text) {
        return JSON.createObjectNode().put("seen", text).toString();
    }

    private static String op(String value) {
        return value == null ? null : node(value).get("op").asText();
    }

    private static JsonNode node(String value) {
        try {
            return JSON.readTree(value);
        } catch (IOException exception) {
            throw new UncheckedIOException(exception);
        }
    }
}
