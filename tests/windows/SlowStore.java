import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** A remote store (KIP-405) in memory: every third read takes delay.ms, or fails where "fails" is true. */
public class SlowStore implements RemoteStorageManager {
    private static final Map<RemoteLogSegmentId, Map<String, byte[]>> STORE = new ConcurrentHashMap<>();
    private final AtomicInteger reads = new AtomicInteger();
    private long delay = 0;
    private boolean fails = false;

    public void configure(Map<String, ?> configs) {
        if (configs.get("delay.ms") != null) delay = Long.parseLong(configs.get("delay.ms").toString());
        fails = "true".equals(String.valueOf(configs.get("fails")));
    }

    public Optional<RemoteLogSegmentMetadata.CustomMetadata> copyLogSegmentData(
            RemoteLogSegmentMetadata metadata, LogSegmentData data) throws RemoteStorageException {
        try {
            Map<String, byte[]> all = new HashMap<>();
            all.put("log", Files.readAllBytes(data.logSegment()));
            all.put("OFFSET", Files.readAllBytes(data.offsetIndex()));
            all.put("TIMESTAMP", Files.readAllBytes(data.timeIndex()));
            if (data.transactionIndex().isPresent()) {
                all.put("TRANSACTION", Files.readAllBytes(data.transactionIndex().get()));
            }
            all.put("PRODUCER_SNAPSHOT", Files.readAllBytes(data.producerSnapshotIndex()));
            ByteBuffer epochs = data.leaderEpochIndex().duplicate();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.get(bytes);
            all.put("LEADER_EPOCH", bytes);
            STORE.put(metadata.remoteLogSegmentId(), all);
            return Optional.empty();
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start) throws RemoteStorageException {
        return fetchLogSegment(metadata, start, Integer.MAX_VALUE);
    }

    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start, int end)
            throws RemoteStorageException {
        if (reads.incrementAndGet() % 3 == 0) {
            if (fails) throw new RemoteStorageException("the store fails");
            try {
                Thread.sleep(delay);
            } catch (InterruptedException error) {
                throw new RemoteStorageException(error);
            }
        }
        byte[] all = of(metadata, "log");
        int stop = (int) Math.min((long) end + 1, all.length);
        return new ByteArrayInputStream(all, start, Math.max(0, stop - start));
    }

    public InputStream fetchIndex(RemoteLogSegmentMetadata metadata, IndexType type) throws RemoteStorageException {
        return new ByteArrayInputStream(of(metadata, type.name()));
    }

    private byte[] of(RemoteLogSegmentMetadata metadata, String what) throws RemoteStorageException {
        Map<String, byte[]> all = STORE.get(metadata.remoteLogSegmentId());
        if (all == null || !all.containsKey(what)) throw new RemoteResourceNotFoundException("no " + what);
        return all.get(what);
    }

    public void deleteLogSegmentData(RemoteLogSegmentMetadata metadata) {
        STORE.remove(metadata.remoteLogSegmentId());
    }

    public void close() { }
}
