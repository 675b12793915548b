import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** Answers questions with MirrorMaker 2's own client. Arguments: properties as key=value; a question a line on stdin. */
public class MirrorMaker {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> properties = new HashMap<>();
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            properties.put(argument.substring(0, equals), argument.substring(equals + 1));
        }
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (MirrorClient client = new MirrorClient(properties)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                System.out.println("ANSWER " + answer(client, properties, words));
            }
        }
    }

    private static String answer(MirrorClient client, Map<String, Object> properties, String[] words) throws Exception {
        switch (words[0]) {
            case "heartbeat_topics": return joined(RemoteClusterUtils.heartbeatTopics(properties));
            case "checkpoint_topics": return joined(RemoteClusterUtils.checkpointTopics(properties));
            case "upstream_clusters": return joined(RemoteClusterUtils.upstreamClusters(properties));
            case "replication_hops": return "" + RemoteClusterUtils.replicationHops(properties, words[1]);
            case "remote_topics":
                return joined(words.length > 1 ? client.remoteTopics(words[1]) : client.remoteTopics());
            case "translate_offsets":
                var found = new TreeMap<String, String>();
                RemoteClusterUtils.translateOffsets(properties, words[1], words[2], Duration.ofSeconds(30)).forEach(
                    (partition, position) ->
                        found.put(partition.toString(), position.offset() + "/" + position.metadata()));
                return found.toString();
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    private static String joined(Collection<String> names) {
        return String.join(" ", new TreeSet<>(names));
    }
}
