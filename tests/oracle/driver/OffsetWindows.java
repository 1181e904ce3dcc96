import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.streams.kstream.Windows;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/** Windows that begin `offset` after 1970 and every `advance` from then on, as users of Kafka Streams write them. In ms. */
final class OffsetWindows extends Windows<TimeWindow> {
    private final long size;
    private final long advance;
    private final long grace;
    private final long offset;

    OffsetWindows(long size, long advance, long grace, long offset) {
        this.size = size;
        this.advance = advance;
        this.grace = grace;
        this.offset = offset;
    }

    @Override
    public Map<Long, TimeWindow> windowsFor(long timestamp) {
        Map<Long, TimeWindow> found = new LinkedHashMap<>();
        for (long start = offset; start <= timestamp; start += advance) {
            if (timestamp < start + size) {
                found.put(start, new TimeWindow(start, start + size));
            }
        }
        return found;
    }

    @Override
    public long size() {
        return size;
    }

    @Override
    public long gracePeriodMs() {
        return grace;
    }
}
