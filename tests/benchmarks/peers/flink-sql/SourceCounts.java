import java.util.List;
import java.util.Properties;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Metric;
import org.apache.flink.metrics.MetricConfig;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.reporter.MetricReporter;
import org.apache.flink.metrics.reporter.MetricReporterFactory;

/** How many records the sources of this JVM's job have read: Flink's own counters, which cost the job nothing more. */
public final class SourceCounts implements MetricReporterFactory, MetricReporter {
    private static final List<Counter> COUNTERS = new CopyOnWriteArrayList<>();

    /** Of all sources together; it stays when they have ended. */
    public static long records() {
        return COUNTERS.stream().mapToLong(Counter::getCount).sum();
    }

    @Override
    public MetricReporter createMetricReporter(Properties properties) {
        return this;
    }

    @Override
    public void notifyOfAddedMetric(Metric metric, String name, MetricGroup group) {
        String operator = group.getAllVariables().get("<operator_name>");
        if (metric instanceof Counter counter && name.equals("numRecordsIn") && operator != null
            && operator.startsWith("Source")) {
            COUNTERS.add(counter);
        }
    }

    @Override
    public void notifyOfRemovedMetric(Metric metric, String name, MetricGroup group) {}

    @Override
    public void open(MetricConfig config) {}

    @Override
    public void close() {}
}
