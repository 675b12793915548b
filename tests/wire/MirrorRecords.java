import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Reads "Class key value" (hex) a line; answers with what MirrorMaker 2's own class reads and writes again. */
public class MirrorRecords {
    public static void main(String[] arguments) throws Exception {
        HexFormat hex = HexFormat.of();
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            Class<?> type = Class.forName("org.apache.kafka.connect.mirror." + parts[0]);
            Method read = type.getMethod("deserializeRecord", ConsumerRecord.class);
            Object record = read.invoke(null,
                new ConsumerRecord<>("topic", 0, 0L, hex.parseHex(parts[1]), hex.parseHex(parts[2])));
            byte[] text = record.toString().getBytes(StandardCharsets.UTF_8);
            System.out.println(hex.formatHex(bytes(record, "recordKey")) + " "
                + hex.formatHex(bytes(record, "recordValue")) + " " + hex.formatHex(text));
        }
    }

    private static byte[] bytes(Object record, String name) throws Exception {
        Method method = record.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return (byte[]) method.invoke(record);
    }
}
