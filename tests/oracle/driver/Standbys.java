package org.apache.kafka.streams.processor.internals.assignment; // whose classes nobody else sees

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/** Where Kafka Streams' own assignor places standbys by the tags of clients. */
public final class Standbys {
    private Standbys() {}

    /**
     * From {"replicas", "keys": [text], "clients": [{"tags": {key: value}, "active": [task]}]} the standbys of each
     * client, as {"placed": [[task]]}. Clients are ordered as they are listed, tasks by their numbers.
     */
    public static String placed(JsonNode asked) {
        Map<ProcessId, ClientState> clients = new LinkedHashMap<>();
        Set<TaskId> tasks = new TreeSet<>();
        for (JsonNode each : asked.get("clients")) {
            ProcessId id = new ProcessId(new UUID(0, clients.size()));
            Map<String, String> tags = new HashMap<>();
            each.get("tags").fields().forEachRemaining(tag -> tags.put(tag.getKey(), tag.getValue().asText()));
            ClientState client = new ClientState(id, 1, tags);
            for (JsonNode task : each.get("active")) {
                client.assignActive(TaskId.parse(task.asText()));
            }
            tasks.addAll(client.activeTasks());
            clients.put(id, client);
        }
        List<String> keys = new ArrayList<>();
        asked.get("keys").forEach(key -> keys.add(key.asText()));
        int replicas = asked.get("replicas").asInt();
        AssignmentConfigs configs =
            new AssignmentConfigs(0L, 1, replicas, 60_000L, keys, OptionalInt.empty(), OptionalInt.empty(), "none");
        new ClientTagAwareStandbyTaskAssignor().assign(clients, tasks, tasks, configs);
        ObjectNode answer = new ObjectMapper().createObjectNode();
        ArrayNode placed = answer.putArray("placed");
        for (ClientState client : clients.values()) {
            ArrayNode kept = placed.addArray();
            new TreeSet<>(client.standbyTasks()).forEach(task -> kept.add(task.toString()));
        }
        return answer.toString();
    }
}
