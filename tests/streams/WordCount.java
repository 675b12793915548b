import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Counts words. Arguments: input and output topic, properties as key=value; a question a line on stdin: state, stop. */
public class WordCount {
    public static void main(String[] arguments) throws Exception {
        var properties = new Properties();
        for (String argument : Arrays.asList(arguments).subList(2, arguments.length)) {
            int equals = argument.indexOf('=');
            properties.put(argument.substring(0, equals), argument.substring(equals + 1));
        }
        var builder = new StreamsBuilder();
        builder.stream(arguments[0], Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String())
                .withValueSerde(Serdes.Long()))
            .toStream()
            .to(arguments[1], Produced.with(Serdes.String(), Serdes.Long()));
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), properties)) {
            streams.start();
            for (String line = lines.readLine(); line != null && !line.equals("stop"); line = lines.readLine()) {
                System.out.println("STATE " + state(streams));
            }
            streams.close(Duration.ofSeconds(60));
        }
        System.out.println("CLOSED");
    }

    private static String state(KafkaStreams streams) {
        var found = new TreeMap<String, Long>();
        try {
            ReadOnlyKeyValueStore<String, Long> store = streams.store(
                StoreQueryParameters.fromNameAndType("counts", QueryableStoreTypes.keyValueStore()));
            try (var all = store.all()) {
                all.forEachRemaining(each -> found.put(each.key, each.value));
            }
        } catch (InvalidStateStoreException notYet) {
            return "";
        }
        var text = new StringBuilder();
        found.forEach((word, count) -> text.append(word).append('=').append(count).append(' '));
        return text.toString().trim();
    }
}
